# German. No native reader has checked it yet.
# The messages are those of en.ftl; docs/developers/translating.md says what to mind.
# Spans of time must not stand in the dative: the table says "2 Tage", not "2 Tagen".

language-name = Deutsch
-example = m0ctane

## Words to type. Each is understood, and shown in the messages below.

command-help = hilfe
command-status = status
command-cancel = abbrechen
command-resend = nochmal
command-stop = stopp
command-start = beginnen
command-delete = löschen
command-split = split
command-find = finde
command-explain = erkläre
command-language = lang

## Numbers and spans of time

decimal = ,
number-names = thousands
amount =
    { $unit ->
        [thousand] { $number } Tausend
        [million] { $number } { $quantity ->
            [one] Million
           *[other] Millionen
        }
        [billion] { $number } { $quantity ->
            [one] Milliarde
           *[other] Milliarden
        }
        [trillion] { $number } { $quantity ->
            [one] Billion
           *[other] Billionen
        }
        [quadrillion] { $number } { $quantity ->
            [one] Billiarde
           *[other] Billiarden
        }
        [quintillion] { $number } { $quantity ->
            [one] Trillion
           *[other] Trillionen
        }
       *[none] { $number }
    }
odds = Etwa 1 Schlüssel von { $amount } passt.
speed = { $amount } Schlüssel pro Sekunde
span =
    { $unit ->
        [seconds] { $count } { $count ->
            [one] Sekunde
           *[other] Sekunden
        }
        [minutes] { $count } Minuten
        [hours] { $count } Stunden
        [days] { $count } Tage
        [years] { $count } Jahre
       *[instant] weniger als eine Sekunde
    }
span-hours-minutes = { $hours } h { $minutes } min
span-again = { $count }
takes-exactly = Das dauert { $mean }.
takes-little = Das dauert { $mean }, selten mehr als { $most }.
takes-about = Das dauert etwa { $mean }, selten mehr als { $most }.

## Lists

comma = { ", " }
more = { $count } weitere
list-and-more = { $list } und { $count } weitere
any-of = { $list } oder { $last }, was zuerst gefunden wird

## Acceptance

accepted = Auftrag { $job }: Ich suche { $patterns }.
no-speed-yet = Ich kenne meine Geschwindigkeit noch nicht. Mit { command-status } erfährst du später die erwartete Zeit.
queue = Andere sind vor dir: Bis du dran bist, dauert es etwa { $span }.
rests-until = Meine Geräte ruhen bis { $time } und suchen dann wieder.
rests-now = Meine Geräte ruhen gerade. Sie suchen weiter, sobald sie können.
at-your-point = Gesucht wird mit deiner eigenen Hälfte.
place-in-line = Dein Platz in der Reihe: { $place }.
tweak-comes = Mein Teil kommt in diesen Chat. Er ist nicht geheim: Nur mit deiner Hälfte ergibt er den Schlüssel.
key-comes = Der Schlüssel kommt in diesen Chat.
best-likely = Wahrscheinlich ist er so selten wie 1 Schlüssel von { $amount }, oder seltener.
best-takes = Dauer: etwa { $span }.
expensive =
    Bei so einem Schlüssel kannst du eine Hälfte selbst behalten. So geht es:
    { command-help } { command-split }
to-stop =
    Zum Abbrechen schicke:
    { command-cancel } { $number }

## Help and status

help =
    Ich finde Nostr-Schlüssel, deren npub mit Zeichen deiner Wahl beginnt.
    Schicke die Zeichen, die auf npub1 folgen sollen:
    { -example }
    Schicke mehrere, und das erste, das gefunden wird, beendet den Auftrag:
    cat dad
    Weitere Nachrichten, die ich verstehe:
    { command-status }: deine Aufträge
    { command-cancel }: alle abbrechen (oder: { command-cancel } 12)
    { command-resend }: den letzten Schlüssel noch einmal
    { command-explain }: was ich noch suchen kann, etwa ähnliche Zeichen
    surprise: ein Schlüssel mit einem Wort am Anfang, zum Ausprobieren
    { command-find } gm: ein Wort suchen, das ich sonst anders verstehe
    { command-stop }: ich schreibe dir nichts mehr
    { command-delete }: ich vergesse dich
    lang en: English
    Ich erzeuge den Schlüssel auf dem Rechner meines Betreibers. Du kannst eine Hälfte selbst behalten. So geht es:
    { command-help } { command-split }
at-work = Offene Aufträge von allen: { $jobs }. Ich probiere { $speed }.
at-work-unmeasured = Offene Aufträge von allen: { $jobs }. Ich kenne meine Geschwindigkeit noch nicht.
job-line = Auftrag { $job }: { $patterns }, bisher { $waited }.
job-line-expected =
    Auftrag { $job }: { $patterns }, bisher { $waited }, erwartet etwa { $mean } (Chance bisher { $chance } %).
job-line-best = Auftrag { $job }: { $best }, bisher { $waited }, der beste so selten wie 1 Schlüssel von { $amount }.
and-more-jobs = Und { $count } weitere.
no-jobs =
    Du hast keinen offenen Auftrag. Für einen neuen schicke die Anfangszeichen:
    { -example }
kept-keys =
    Schlüssel, die ich noch einmal schicken kann: { $jobs }. Schicke:
    { command-resend }

## Cancelling, and sending again

cancelled =
    { $count ->
        [one] Auftrag { $jobs } ist abgebrochen.
       *[other] Die Aufträge { $jobs } sind abgebrochen.
    }
no-such-job = Du hast keinen offenen Auftrag { $job }.
no-open-job = Du hast keinen offenen Auftrag.
start-one =
    Für einen neuen schicke die Anfangszeichen:
    { -example }
cancel-one =
    Offen sind { $jobs }. Um einen abzubrechen, schicke:
    { command-cancel } { $number }
sent-again =
    Der Schlüssel von Auftrag { $job } ist noch einmal unterwegs.
    Es ist dieselbe Nachricht. Wenn dein Client sie schon hat, steht sie weiter oben.
no-such-key = Ich habe keinen Schlüssel zu einem Auftrag { $job } von dir.
no-key = Ich habe keinen Schlüssel von dir.
resend-later = Wenn ein Auftrag fertig ist, wiederholt { command-resend } seine Nachricht.
resend-one =
    Ich kann { $jobs } noch einmal schicken. Schicke:
    { command-resend } { $number }

## What is not understood

find-it = { command-find } { $prefix }
bad-word = { $word }: { $reason }.
send-only-the-prefix =
    Es wurde nichts gestartet. Schicke nur die Anfangszeichen:
    { -example }
    oder:
    { command-help }
pattern-empty = da stehen keine Anfangszeichen; schicke 1 bis { $most } der Zeichen { $alphabet }
pattern-too-long = { $characters } Zeichen sind zu viele; bei einem npub lassen sich höchstens { $most } wählen
pattern-forbidden = „{ $character }“ kommt in keinem npub vor; möglich sind die Zeichen { $alphabet }
pattern-forbidden-one = „{ $character }“ kommt in keinem npub vor; „{ $first }“ ginge
pattern-forbidden-two = „{ $character }“ kommt in keinem npub vor; „{ $first }“ oder „{ $second }“ ginge
pattern-impossible = so beginnt kein öffentlicher Schlüssel; die ersten { $count } Zeichen davon wären möglich
pattern-look-alike = { $reason }; { $pattern } nimmt jede Schreibweise mit ähnlichen Zeichen
pattern-anything = das passt auf jeden Schlüssel; nenne mindestens ein Zeichen
pattern-class = mehrere Zeichen für eine Stelle schreibt man als [s5]
pattern-number = nach { $keyword } kommt eine Zahl von { $least } bis { $most }, zum Beispiel { $example }
pattern-number-nearest = nach { $keyword } kommt eine Zahl von { $least } bis { $most }; am nächsten kommt { $nearest }
pattern-hex = nach hex: kommen 1 bis 64 der Ziffern 0 bis 9 und a bis f, zum Beispiel hex:c0de
pattern-hex-one = nach hex: kommen 1 bis 64 der Ziffern 0 bis 9 und a bis f; { $first } wäre möglich
pattern-hex-too-long = ein Schlüssel hat { $most } Hex-Ziffern; das sind { $digits }, lass { $more } weg
pattern-within = @ folgt auf ein Wort zwischen Sternen und sagt, innerhalb wie vieler Zeichen, zum Beispiel *m0ct*@12
pattern-within-one = @ folgt auf ein Wort zwischen Sternen und sagt, innerhalb wie vieler Zeichen; { $first } wäre möglich
pattern-too-many = mit einem Teil an anderer Stelle lassen sich höchstens { $most } Zeichen wählen; das sind { $characters }
pattern-ending = das siebte Zeichen von hinten ist immer q oder s
pattern-ending-one = das siebte Zeichen von hinten ist immer q oder s; { $first } wäre möglich
pattern-too-intricate = das hat zu viele offene Stellen; lass einige weg
pattern-best = best steht allein und mit einer Zeit, wie best 10m, best zeros 10m oder best words 10m; surprise steht allein
unsupported =
    Das kann ich nicht lesen. Es wurde nichts gestartet.
    Für das Ende eines Schlüssels steht ein Stern davor: { "*m0ct" }. Um zu sehen, was ich verstehe, schicke:
    { command-explain }
unsupported-nearest =
    Am nächsten kommt:
    { command-find } { $nearest }
unsupported-example =
    Schicke Anfangszeichen, zum Beispiel:
    { -example }
hello =
    Hallo! Schicke mir die Zeichen, mit denen dein npub beginnen soll, zum Beispiel:
    { -example }
search-for-it =
    Um npub1{ $prefix } selbst zu suchen, schicke:
    { command-find } { $prefix }
secret-key =
    Das ist ein geheimer Schlüssel. Zeige ihn niemandem und benutze ihn nicht mehr.
    Ich habe ihn nicht behalten, aber er ist durch Relays und Clients gegangen.
    Für einen neuen Schlüssel schicke nur die Anfangszeichen:
    { -example }
seed-answer = Ein gewählter npub kann nicht aus 12 oder 24 Wörtern (Seed) entstehen: Sein nsec ist die Sicherung.
nothing =
    Ich sehe kein Wort in deiner Nachricht.
    Schicke die Zeichen, mit denen dein npub beginnen soll:
    { -example }
    oder:
    { command-help }
text-only =
    Ich lese nur Text, keine Dateien.
    Schicke die Zeichen, mit denen dein npub beginnen soll:
    { -example }
no-groups =
    Diese Nachricht ging an mehrere Personen, und ein Schlüssel ist nur für dich.
    Frage mich in einem Chat, in dem sonst niemand ist.

## Offers and frequent questions

offer-impossible = „{ $character }“ kommt in einem npub nicht vor. Es wurde nichts gestartet. Das hier sieht ähnlich aus; wenn ich es suchen soll, sende:
offer-accent = Ein npub hat keine Umlaute, Akzente oder Zeichen dazwischen. Es wurde nichts gestartet. Ohne sie:
offer-script = „{ $character }“ ist ein Buchstabe einer anderen Schrift, der wie „{ $latin }“ aussieht. Es wurde nichts gestartet. Mit dem richtigen:
offer-unsure = Es wurde nichts gestartet, weil ich nicht sicher bin, was du meinst. Wenn ich das suchen soll, sende:
offer-uneven = { $easiest } ist über 1000-mal leichter als der Rest, du bekämst also immer das. Es wurde nichts gestartet. Nur für den Rest sende:
offer-change =
    Auftrag { $job } läuft weiter, sonst wurde nichts gestartet. Um ihn zu ändern, sende nacheinander:
    { command-cancel } { $number }
show-delete =
    Das löscht hier deine Aufträge und Nachrichten und die Schlüssel, die ich noch einmal senden könnte. Wenn du das willst, sende:
    { command-delete }
show-stop =
    Wenn du keine Nachrichten mehr von mir willst, sende:
    { command-stop }
answer-who =
    Ich bin ein Programm, das Nostr-Schlüssel findet, deren npub so beginnt, wie du willst: npubbot, quelloffen, vom Betreiber dieses npub betrieben.
    Ich schreibe nur Leuten, die mir geschrieben haben. Wenn du keine Nachrichten mehr willst, sende:
    { command-stop }
answer-price = Es kostet nichts: Ich verlange kein Geld und nehme auch keins.
answer-safety =
    Dein Schlüssel entsteht im Speicher des Rechners meines Betreibers und kommt verschlüsselt. Vertraue ihm so weit, wie du dem Betreiber vertraust.
    Mein Betreiber sieht deinen npub und was du gesucht hast. Damit das vergessen wird, sende:
    { command-delete }
    Du kannst die Hälfte des Schlüssels selbst behalten. So geht es:
    { command-help } { command-split }
answer-import =
    Kopiere die ganze Zeile, die mit nsec1 beginnt, in deinen Client, dort, wo er nach dem privaten Schlüssel fragt (Anmelden, nsec). Lösche dann meine Nachricht.
    Es ist eine neue Identität. Einen Schlüssel, den du schon hast, kann niemand ändern: Er bleibt gültig und behält seine Follower.
    Den letzten Schlüssel bekommst du noch einmal mit:
    { command-resend }
thanks-answer = Gern geschehen! Für einen weiteren Schlüssel sende einfach einen Anfang.
chat-answer =
    Ich finde nur Schlüssel. Sende mir die Zeichen, mit denen dein npub beginnen soll:
    { -example }
which-next =
    Welcher soll es sein? Sende den ganzen Anfang, zum Beispiel:
    { -example }
latin-letters =
    Ein npub hat nur lateinische Buchstaben und Ziffern. Schreib es damit, zum Beispiel:
    { "~hanako" }
foreign-language = Diese Sprache kann ich nicht. Ich antworte auf { $names }.
other-job =
    Auftrag { $job } läuft auch weiter. Um ihn zu beenden, sende:
    { command-cancel } { $number }
page = Es gibt auch eine Webseite: { $url }

## Patterns

means = { $pattern }: { $meaning }.
meaning-start = beginnt mit npub1{ $text }
meaning-alike = beginnt mit npub1 und etwas, das sich wie „{ $text }“ liest
meaning-middle =
    { $from ->
        [start] hat danach irgendwo { $text }
       *[npub] hat irgendwo nach npub1 { $text }
    }
meaning-within = hat { $text } innerhalb der ersten { $count } Zeichen nach npub1
meaning-end = endet auf { $text } (mit Prüfsumme)
spelling = etwas, das sich wie „{ $text }“ liest
meaning-equal = beginnt mit npub1 und { $count } gleichen Zeichen
meaning-equal-anywhere = hat { $count } gleiche Zeichen hintereinander
meaning-hex-start = der öffentliche Schlüssel beginnt in Hex mit { $text }
meaning-hex-end = der öffentliche Schlüssel endet in Hex auf { $text }
meaning-zeros = Nullbits am Anfang des öffentlichen Schlüssels: { $count }
meaning-words = beginnt mit npub1 und einem Wort meiner Liste mit { $count } oder mehr Buchstaben
meaning-best =
    der seltenste Schlüssel aus einer Suche von { $span }, nach { $family ->
        [zeros] Nullbits am Anfang
        [words] dem Wort meiner Liste am Anfang
       *[any] Nullbits, gleichen Zeichen oder einem Wort am Anfang
    }
open-place = ? ist ein beliebiges Zeichen
one-of = eines der Zeichen in Klammern
looks-alike =
    Das sieht ähnlich aus. Dauer: { $span }:
    { command-find } { $pattern }
needs-start = Das kann ich nicht suchen: zu wenig davon steht am Anfang eines Schlüssels.
nothing-started = Es wurde nichts gestartet.
too-wide =
    Das erlaubt { $asked } verschiedene Anfänge eines Schlüssels, und ich nehme höchstens { $allowed } pro Auftrag.
    Es wurde nichts gestartet. Schicke weniger Muster, oder mit weniger offenen Stellen.
too-many-ends =
    Von Mustern, die wenig über den Anfang eines Schlüssels sagen, nehme ich höchstens { $allowed } pro Auftrag. Deiner hat { $asked }.
    Es wurde nichts gestartet. Schicke weniger Muster, oder mit mehr Zeichen am Anfang.
too-wide-now =
    Ich suche gerade so viele verschiedene Anfänge, dass ich nur einfache Muster annehmen kann.
    Es wurde nichts gestartet. Versuche es später noch einmal, oder schicke Anfangszeichen:
    { -example }
explain-find =
    Um danach zu suchen, schicke:
    { command-find } { $pattern }
kinds =
    Ich suche Schlüssel nach diesen Mustern:
    { -example }: diese Zeichen nach npub1
    m0?tane: ? ist ein beliebiges Zeichen
    { "[s5]at0sh" }: eines der Zeichen in Klammern
    { "~m0ctane" }: jede Schreibweise mit ähnlichen Zeichen
    =7: sieben gleiche Zeichen
    hex:c0de: der öffentliche Schlüssel in Hex
    zeros:24: Nullbits am Anfang des öffentlichen Schlüssels
    words:8: ein Wort meiner Liste mit 8 oder mehr Buchstaben
    best 10m: der seltenste Schlüssel aus zehn Minuten
    surprise: das längste Wort aus zehn Sekunden
    Um zu erfahren, was eines bedeutet und wie lange es dauert, schicke:
    { command-explain } { "~m0ctane" }

## Limits

too-many-prefixes =
    Das sind { $asked } Wörter, und ich nehme höchstens { $allowed } pro Auftrag.
    Schicke höchstens { $allowed }, die dir am besten gefallen.
already-searching =
    Genau das suche ich schon, als Auftrag { $job }.
    Wie es steht, sagt dir:
    { command-status }
    Zum Abbrechen schicke:
    { command-cancel } { $number }
result-not-taken =
    Ein Schlüssel, den ich für dich gefunden habe, ist noch hier: keines deiner Relays hat ihn angenommen. Es wurde nichts gestartet.
    Wenn deine Relays jetzt Nachrichten von mir annehmen, schicke:
    { command-resend }
too-many-not-taken = Ich bewahre so viele Schlüssel auf, die niemand abholt, dass ich für neue Leute nichts starten kann. Versuche es später noch einmal.
too-many-open =
    Du hast { $count } { $count ->
        [one] offenen Auftrag
       *[other] offene Aufträge
    } ({ $jobs }); die Grenze ist { $allowed }.
    Warte, bis einer endet, oder brich einen ab:
    { command-cancel } { $number }
too-many-today =
    Du hast in den letzten 24 Stunden { $allowed } { $allowed ->
        [one] Auftrag
       *[other] Aufträge
    } gestartet; das ist die Grenze.
    Bis zum nächsten dauert es { $span }.
too-hard = Das würde etwa { $span } dauern. Ich nehme nichts an, was länger als { $limit } dauert.
too-hard-all = Zurzeit kann ich gar nichts annehmen. Versuche es später noch einmal.
too-hard-up-to =
    Zurzeit nehme ich bis zu { $characters } Zeichen an.
best-too-long =
    Nach dem seltensten Schlüssel suche ich höchstens { $limit }. Es wurde nichts gestartet. Schicke:
    { command-find } { $best }
not-measured =
    Ich kenne meine Geschwindigkeit gerade nicht und kann nicht sagen, wie lange das dauert.
    Bis zu { $characters } Zeichen gehen jetzt. Für mehr versuche es in einer Minute noch einmal.
needs-sealed =
    Dein Client hat eine alte Art von Nachricht (NIP-04) geschickt. Ich arbeite nur mit NIP-17-Nachrichten.
    Frage mich mit einem Client, der sie sendet, etwa Amethyst, 0xchat, Coracle oder Nostur, und lass ihn deine DM-Relays veröffentlichen.
needs-sealed-page = Oder nimm meine Seite, ohne Client: { $page }
friends-only = Dieser Bot sucht nur für Freunde seines Betreibers.
restored =
    Ich wurde nach dieser Nachricht aus einer Sicherung wiederhergestellt und habe sie vielleicht schon beantwortet.
    Wenn du es noch möchtest, schicke sie noch einmal. Für einen geteilten Schlüssel mache zuerst eine neue Hälfte.
price =
    Gerade wollen viele einen Schlüssel von mir, darum kostet das ein wenig Arbeit deines Geräts: { $bits } Bits Proof of Work, auf einem Telefon etwa { $span }. Es wurde nichts gestartet.
price-page = Meine Webseite erledigt die Arbeit für dich: { $page }
price-command =
    Auf einem Rechner mit npubbot macht das dieser Befehl:
    { $command }
    Schicke deine Anfrage dann noch einmal, zusammen mit der Zeile, die er zeigt. Oder versuche es später.
work-alone =
    Das ist der Proof of Work. Schicke ihn in einer Nachricht mit deiner Anfrage, zum Beispiel:
    { -example }
    work …
paused =
    Das sind viele Nachrichten. Ich antworte wieder um { $time }.
    Deine offenen Aufträge laufen weiter.

## Split keys

split-help =
    Behalte eine Hälfte des Schlüssels: Dann nützt meine Antwort niemandem außer dir.
    Mache auf deinem Rechner eine geheime Hälfte (oder mit der Webseite, die zu npubbot gehört):
    npubbot split new { -example }
    Schicke mir die Zeile, die es zeigt:
    split HALF { -example }
    Ich antworte mit meinem Teil, der nicht geheim ist. Deine Hälfte und mein Teil ergeben den Schlüssel:
    npubbot combine
bad-point = Diese öffentliche Hälfte kann ich nicht verwenden: { $reason }.
no-point = Ich sehe darin keine öffentliche Hälfte.
send-a-point =
    Es wurde nichts gestartet. Schicke:
    split HALF { -example }
    So machst du eine:
    { command-help } { command-split }
point-not-a-point = eine öffentliche Hälfte besteht aus 66 Hexadezimalziffern, die mit 02 oder 03 beginnen, oder ist ein npub
point-not-on-curve = diese Ziffern sind keine öffentliche Hälfte, es fehlt also etwas oder ist vertippt; kopiere alles
point-damaged = die Prüfsumme des npub stimmt nicht, es fehlt also etwas oder ist vertippt; kopiere alles
point-alone =
    Ich sehe deine Hälfte, aber keine Anfangszeichen. Es wurde nichts gestartet.
    Schicke beides in einer Nachricht:
    split HALF { -example }
    So geht es:
    { command-help } { command-split }
half-used =
    { $use ->
        [open] Mit dieser Hälfte oder einer verwandten wird schon gesucht.
       *[spent] Diese Hälfte oder eine verwandte hat schon für einen Schlüssel gedient.
    }
    Zwei Schlüssel aus einer Hälfte verraten einander: Wer den einen hat, findet den anderen.
    Mache für jeden Schlüssel eine neue Hälfte:
    npubbot split new

## Stop, start, delete, language

stopped =
    Ich schreibe dir nichts mehr.
    Um wieder von mir zu hören, schicke:
    { command-start }
stopped-cancelled =
    { $open ->
        [one] Dein offener Auftrag ist abgebrochen.
       *[other] Deine { $open } offenen Aufträge sind abgebrochen.
    } Ich schreibe dir nichts mehr.
    Um wieder von mir zu hören, schicke:
    { command-start }
started =
    Ich bin wieder da. Schicke Anfangszeichen:
    { -example }
    oder:
    { command-help }
forgotten =
    Erledigt: Deine Aufträge{ $open ->
        [0] {""}
       *[other] {" "}(offene sind abgebrochen)
    } und Nachrichten sind gelöscht, mit den Schlüsseln, die ich noch einmal hätte schicken können.
    Die Nummern deiner Nachrichten verschwinden innerhalb von 9 Tagen; bis dahin verhindern sie, dass ich alte Kopien noch einmal beantworte.
    Die Zeiten der Aufträge aus den letzten 24 Stunden bleiben so lange: Sie zählen für die Grenze pro Tag.
language-set =
    Ich antworte jetzt auf Deutsch.
    Schicke Anfangszeichen:
    { -example }
    oder:
    { command-help }
languages = Ich antworte in diesen Sprachen. Schicke eine Zeile davon:
choose-language = lang { $code } ({ $name })

## Results and notices

found-prefix = Dieser npub beginnt mit npub1{ $pattern }
found-met = Dieser npub hat { $met }, das passt zu { $pattern }
found-word = Dieser npub beginnt mit npub1{ $met }, das liest sich als „{ $word }“
found-fits = Dieser npub passt zu { $pattern }
found-after = Auftrag { $job } ist fertig. Dauer: { $waited }. { $fits }:
found-best = Auftrag { $job } ist fertig: Das ist der seltenste Schlüssel, den ich gesehen habe. { $fits }, wie 1 Schlüssel von { $amount }:
key-found =
    { $heading }
    { $npub }
    Meine nächste Nachricht ist sein geheimer Schlüssel und sonst nichts: Kopiere sie ganz.
    Wer ihn hat, ist diese Identität. Bewahre ihn gut auf und zeige ihn niemandem.
    Er wurde auf dem Rechner meines Betreibers erzeugt: Vertraue ihm so weit, wie du dem Betreiber vertraust.
    Um beide Nachrichten noch einmal zu bekommen, schicke:
    { command-resend }
tweak-found =
    { $heading }
    { $npub }
    Meine nächste Nachricht ist mein Teil und sonst nichts: Kopiere sie ganz. Er ist nicht geheim.
    Mit deiner Hälfte ergibt er den Schlüssel:
    npubbot combine
    Deine Hälfte hat jetzt gedient. Mache für den nächsten Schlüssel eine neue.
tips = Wenn du dich freust: Trinkgeld für meinen Betreiber geht an { $address }
apology =
    Bei dieser Nachricht ist auf meiner Seite etwas schiefgegangen. Es wurde nichts gestartet.
    Es steht im Protokoll meines Betreibers. Sage es mit anderen Worten oder schicke:
    { command-help }
late =
    Auftrag { $job } dauert länger, als ich gesagt habe: bisher { $waited }.
    Das ist Pech oder ein langsamer Tag. Ich suche noch höchstens { $left } weiter; du musst nichts tun.
    Zum Abbrechen schicke:
    { command-cancel } { $number }
lost =
    Auftrag { $job } ist aufgegeben: Ich wurde aus einer Sicherung wiederhergestellt, und deine Hälfte ist vielleicht schon benutzt. Zwei Schlüssel aus einer Hälfte verraten einander.
    Mache eine neue Hälfte und schicke mir die Zeile, die sie ausgibt: npubbot split new
given-up =
    Auftrag { $job } ist aufgegeben: { $patterns ->
        [one] Ich habe den Anfang nicht gefunden
       *[other] Ich habe keinen der { $patterns } Anfänge gefunden
    } (Dauer: { $span }).
    Schicke etwas Kürzeres, oder dasselbe noch einmal für einen neuen Versuch.
