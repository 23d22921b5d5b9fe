# The page in German. No native reader has checked it yet.
# The messages are those of en.ftl; docs/developers/translating.md says what to mind.
# Spans of time must not stand in the dative: the table says "2 Tage", not "2 Tagen".

text-direction = ltr
sentence = { $text }.

## The first screen

page-title = npubbot: wähle dein npub
page-title-found = npubbot: dein Schlüssel ist da
heading = Ein Nostr-Schlüssel mit deinen Buchstaben
lead-nostr =
    Nostr ist ein Netz für Beiträge und Nachrichten, das niemandem gehört. Dein npub ist dort dein öffentlicher Name,
    und dein nsec ist der geheime Schlüssel dazu.
lead-half =
    Die Hälfte des Geheimnisses entsteht in diesem Browser und bleibt hier. So kann niemand außer dir den Schlüssel
    haben.
language = Sprache
ask-title = Womit soll dein npub beginnen?
characters-help = Kleine Buchstaben und Ziffern. Die Zeichen 1, b, i und o gibt es in einem npub nicht.
more-patterns = Weitere Muster
several-help = Schreibe mehrere mit Leerzeichen dazwischen: Es gilt, was zuerst gefunden wird.
find-key = Meinen Schlüssel finden
searching-bot = Der Bot wird gesucht …
bot-found = Du fragst { $bot }, { $npub }…, über { $relays }.
bot-asleep = { $bot } ist gerade offline. Du kannst fragen: Die Antwort kommt, wenn er wieder da ist. Bewahre deine Anfrage so lange auf.
relays-dead = Keines der Relays in diesem Link ist erreichbar. Prüfe deine Verbindung und versuche es noch einmal, oder hole einen neuen Link.
bot-unknown = Der Bot ist noch nicht gefunden. Warte einen Moment oder versuche es noch einmal.
the-bot = den Bot
try-again = Noch einmal versuchen
open-file = Eine als Datei gespeicherte Anfrage öffnen
use = { $pattern } verwenden
spellings = Andere Schreibweisen zum Antippen

rarity-later = Der Bot sagt, wie selten das ist und wie lange es dauert.
time-later = Der Bot sagt, wie lange das dauert.
best-time = Der Bot sucht { $span } lang und sagt, wie selten der Schlüssel ist.
too-long = Das würde etwa { $span } dauern, und dieser Bot sucht höchstens { $limit }. Kürze es.
too-long-fits = Das würde etwa { $span } dauern, und dieser Bot sucht höchstens { $limit }. Das hier geht:
no-pattern = Schreibe die Zeichen, die auf npub1 folgen sollen, zum Beispiel m0ctane

## Links

link-nsec = Das ist ein geheimer Schlüssel (nsec). Zeige ihn niemandem und füge ihn nirgends ein. Um einen Bot zu fragen, füge sein npub ein.
link-none = Hier ist kein Bot genannt. Füge das npub1… des Bots oder seinen Link ein.
link-damaged = Das npub des Bots ist beschädigt: Ein Teil fehlt oder ist vertippt. Kopiere noch einmal den ganzen Link.
address-nsec = In dieser Adresse stand ein geheimer Schlüssel (nsec), und andere haben ihn vielleicht gesehen. Benutze diesen Schlüssel nicht mehr und mache einen neuen.
no-bot-title = Diese Seite für dich fragen lassen
bot-label = Das npub oder der Link des Bots
bot-help = Dann verbindet sich die Seite mit den Relays des Bots und mit nichts anderem.
open = Öffnen

## Waiting

request-title = Deine Anfrage: { $patterns }
step-wait = Warten auf den Bot
step-search = Suche läuft
step-found = Gefunden
step-done = : erledigt
step-now = : jetzt
chance-key = Wahrscheinlichkeit, dass der Schlüssel schon gefunden ist
chance-work = Wahrscheinlichkeit, dass die Arbeit schon getan ist
part-over = Vergangener Teil der Zeit
connecting = Verbindung wird aufgebaut …
relays-gone = Gerade ist kein Relay erreichbar. Die Seite versucht es weiter; prüfe deine Verbindung.
sending = Deine Anfrage wird gesendet …
waiting = Warten auf die Antwort des Bots …
no-answer = Der Bot hat noch nicht geantwortet. Vielleicht ist er beschäftigt oder offline. Bewahre deine Anfrage unten auf und komm später wieder.
searching = Der Bot sucht (Auftrag { $job }).
refused = Es wurde nichts gestartet. Lies, was der Bot sagt, und frage nach etwas anderem.
stopping = Dem Bot wird gesagt, dass er aufhören soll …
stopped = Angehalten. Du kannst nach etwas anderem fragen.
working = Gerade fragen viele, deshalb will der Bot zuerst etwas Arbeit. Dein Browser erledigt sie.
worked = Die Arbeit ist getan. Warten auf die Antwort des Bots …
work-percent = { $percent } von 100 sind getan, noch etwa { $span }.
work-percent-only = { $percent } von 100 sind getan.
so-far = Bisher { $elapsed }.
so-far-of = Bisher { $elapsed } von { $time }.
so-far-expected = Bisher { $elapsed }, erwartet etwa { $time }.
so-far-late = Bisher { $elapsed }, erwartet etwa { $time }. Es dauert lange und kann jeden Moment so weit sein.
bot-says = Was der Bot sagt
stop-search = Suche anhalten
ask-again = Nach etwas anderem fragen

## Keeping a request

keep-title = Willst du diese Seite solange schließen?
keep-why = Deine Hälfte des Geheimnisses ist nur in diesem Tab. Bewahre sie unter einer Passphrase auf, dann kannst du den Schlüssel später holen.
keep-passphrase = Eine Passphrase, die du dir merkst
keep-here = In diesem Browser aufbewahren
keep-file = Als Datei speichern
is-kept = Diese Anfrage ist aufbewahrt. Du kannst die Seite schließen und wiederkommen.
kept-here = In diesem Browser aufbewahrt. Du kannst die Seite schließen und mit deiner Passphrase wiederkommen.
kept-file = Gespeichert, außer dein Browser hat gefragt und du hast abgelehnt. Du kannst die Seite schließen und mit deiner Passphrase wiederkommen.
kept-title = Weitermachen, wo du warst
kept-requests = Deine gespeicherten Anfragen
kept-asked = gefragt am { $when }
saved-file = Eine gespeicherte Datei
its-passphrase = Ihre Passphrase
go-on = Weiter
delete-kept = Diese Anfrage löschen
delete-sure = Diese Anfrage löschen? Ohne sie ist die Antwort des Bots nichts wert.
no-passphrase = Es fehlt noch eine Passphrase. Schreibe eine.
wrong-passphrase = Falsche Passphrase. Versuche es noch einmal.
file-damaged = Diese Datei ist beschädigt oder nicht von dieser Seite. Wähle eine andere.
file-large = Diese Datei ist zu groß, um von dieser Seite zu sein. Wähle eine andere.
file-none = Es ist noch keine Datei gewählt.
kept-many = Dieser Browser bewahrt schon { $count } Anfragen auf. Speichere diese als Datei.
keeps-nothing = Dieser Browser bewahrt für diese Seite nichts auf. Speichere stattdessen eine Datei.
no-request = Das ist keine gespeicherte Anfrage, oder sie ist beschädigt.
slow = In Arbeit: Das ist absichtlich langsam.
no-memory = Es hat nicht geklappt, vielleicht aus Mangel an Speicher. Schließe andere Tabs und versuche es noch einmal.
went-wrong = Etwas ist schiefgegangen. Bitte lade die Seite neu.

## The key

done-title = Dein Schlüssel ist da
npub-label = Öffentlich: dein npub
nsec-label = Geheim: dein nsec
nsec-warning = Speichere ihn jetzt in deinem Passwortmanager. Wer ihn hat, ist du, und niemand kann ihn dir wiedergeben, wenn er verloren geht.
save-nsec = Im Passwortmanager speichern
copy = Kopieren
copy-npub = Kopieren
    .aria-label = Dein npub kopieren
copy-nsec = Kopieren
    .aria-label = Deinen nsec kopieren
copy-ncryptsec = Kopieren
    .aria-label = Deinen ncryptsec kopieren
show = Zeigen
hide = Verbergen
print = Ein Blatt drucken
print-title = Nostr-Schlüssel: Bewahre dieses Blatt dort auf, wo es sonst niemand sieht
copied = Kopiert.
copy-selected = Dein Browser lässt die Seite nicht kopieren. Der Text ist ausgewählt: Kopiere ihn selbst.
copy-shown = Dein Browser lässt die Seite nicht kopieren. Zeige den Text an und kopiere ihn selbst.
save-asked = Dein Browser wurde gebeten, ihn zu speichern. Hat er es nicht angeboten, nimm „Kopieren“.
save-refused = Dein Browser speichert ihn für diese Seite nicht. Nimm „Kopieren“ und füge ihn in deinen Passwortmanager ein.
qr-note = Dasselbe als QR-Code, für ein anderes Gerät von dir. Wer ihn fotografiert, hat deinen Schlüssel.
qr-nsec = QR-Code deines nsec
qr-message = QR-Code der Nachricht
ncryptsec-title = Mit einem Passwort (ncryptsec)
ncryptsec-lead = Für Apps, die einen verschlüsselten Schlüssel nehmen. Ohne das Passwort ist er nichts wert, auch für dich nicht.
password = Passwort
no-password = Es fehlt noch ein Passwort. Schreibe eines.
encrypt = Verschlüsseln
encrypted = Verschlüsselt.
ncryptsec-label = Dein ncryptsec
apps-title = In einer App benutzen
apps-lead = Öffne eine, wähle „Anmelden“ und füge deinen nsec ein:
app-primal = Primal: Handy und Web
app-amethyst = Amethyst: Android; nimmt auch einen ncryptsec
app-damus = Damus: iPhone
app-coracle = Coracle: Web
app-device = Die Nostr-App auf diesem Gerät
new-account = Das ist ein neues Konto. Wer einem alten folgt, kommt nicht mit: Sag ihnen dein neues npub.
half-served = Deine Hälfte ist verbraucht. Benutze sie nie für einen weiteren Schlüssel: Wer einen der beiden hat, kann den anderen berechnen.
half-served-twice =
    WARNUNG: Diese Hälfte hat schon einen anderen Schlüssel ergeben. Wer einen der beiden hat, kann den anderen
    berechnen. Benutze nur einen, und mache für den nächsten eine neue Hälfte.
other-answer =
    Der Bot hat auf diese Anfrage schon eine andere Antwort geschickt. Zwei Schlüssel aus einer Hälfte verraten
    einander, deshalb wird diese abgelehnt. Frage neu.
tab-holds = Dieser Tab behält deinen Schlüssel, bis du ihn vergessen lässt oder den Tab schließt.
forget = Ich habe meinen Schlüssel gespeichert: hier alles vergessen
forget-sure = Du hast deinen Schlüssel weder kopiert noch angezeigt noch gespeichert. Ohne ihn kann niemand das npub benutzen. Vergessen?
forgotten = Vergessen: Von dieser Anfrage ist nichts mehr in diesem Browser.
clipboard-has = In deiner Zwischenablage ist der Schlüssel noch.
clear-clipboard = Zwischenablage leeren
clipboard-cleared = Die Zwischenablage ist geleert. Ein Verlauf der Zwischenablage kann ihn noch haben.
clipboard-stays = Dein Browser erlaubt der Seite das nicht. Kopiere etwas anderes.

leave-key = Du hast deinen Schlüssel weder kopiert noch angezeigt noch gespeichert. Der geänderten Adresse folgen?
leave-half = Deine Hälfte ist nicht aufbewahrt. Die Antwort darauf wäre verloren. Der geänderten Adresse folgen?
again-sure = Du hast diese Anfrage nicht aufbewahrt. Der Bot hört auf zu suchen, und seine Antwort wäre verloren. Weiter?

## By hand

manual-title = Von Hand: offline, mit deinem eigenen Nostr-Konto
manual-lead =
    Mache hier die Hälfte, schicke die Nachricht selbst und komm mit der Antwort des Bots zurück. Das geht offline:
    Speichere diese Seite und öffne sie ohne Netz, wenn du willst.
manual-ask = Fragen
manual-make = Meine Hälfte machen
half-title = Bewahre deine Hälfte auf
half-warning =
    Geheim, und später nötig. Die Suche kann Tage dauern, und diese Seite vergisst die Hälfte, wenn sie geschlossen
    wird. Ohne sie ist die Antwort nichts wert. Sie dient nur einer Anfrage: Mache für die nächste eine neue.
half-label = Deine Hälfte
copy-half = Kopieren
    .aria-label = Deine Hälfte kopieren
half-passphrase = Oder als Datei, unter einer Passphrase
half-saved = Gespeichert, außer dein Browser hat gefragt und du hast abgelehnt.
half-kept = Ich habe meine Hälfte sicher aufbewahrt
half-replace = Du hast die vorige Hälfte nicht aufbewahrt. Ersetzen? Eine Antwort darauf wäre verloren.
send-title = Schicke das an den Bot
send-lead = Als Direktnachricht, von einem beliebigen Nostr-Konto. Nichts darin ist geheim.
message-label = Nachricht
copy-message = Kopieren
    .aria-label = Die Nachricht kopieren
send-then = Der Bot antwortet mit einem Text, der mit ntweak1 beginnt. Komm damit zu Schritt 2.
work-title = Ein Bot verlangt Arbeit
work-answer = Die Antwort des Bots
work-help =
    Füge die ganze Antwort ein. Dein Browser erledigt die Arbeit, und du schickst die Zeile, die er macht, in einer
    Nachricht mit deiner Anfrage. Lass diese Seite offen; es geht ohne Verbindung.
work-line = Die Zeile zum Schicken
copy-line = Zeile kopieren
work-do = Arbeit erledigen
work-stop = Anhalten
work-stopped = Angehalten.
work-added = Fertig. Schicke die Zeile in einer Nachricht mit deiner Anfrage. Sie zählt einmal, heute.
work-none = Darin steht keine Zeile „npubbot work …“ mit einer Zahl bis { $most }. Füge die ganze Antwort des Bots ein.
manual-finish = Fertigstellen
half-in-file = Meine Hälfte ist in einer Datei
the-file = Die Datei
file-passphrase = Die Passphrase der Datei
open-file-button = Datei öffnen
half-opened = Geöffnet. Füge jetzt die Antwort des Bots ein.
answer-label = Die Antwort des Bots
asked-for = Das Muster, nach dem du gefragt hast (wird geprüft, wenn es dasteht)
make-key = Meinen Schlüssel machen

## Texts that are pasted

text-missing =
    { $kind ->
        [nhalf] Deine Hälfte fehlt. Füge den Text ein, der mit nhalf1 beginnt.
       *[ntweak] Die Antwort des Bots fehlt. Füge den Text ein, der mit ntweak1 beginnt.
    }
text-damaged =
    { $kind ->
        [nhalf] Diese Hälfte ist beschädigt
       *[ntweak] Diese Antwort ist beschädigt
    }: Ein Teil fehlt oder ist vertippt. Kopiere noch einmal den ganzen Text { $kind }1….
text-version = Dieser Text { $kind }1… hat Version { $version }, und diese Seite liest Version 1. Hole eine neuere Ausgabe der Seite.
text-several = Darin sind { $count } Texte { $kind }1…. Füge einen ein.
text-other =
    { $other ->
        [nsec] Das ist ein geheimer Schlüssel (nsec). Füge ihn nur ein, wo du musst.
        [ncryptsec] Das ist ein verschlüsselter geheimer Schlüssel (ncryptsec).
        [npub] Das ist ein öffentlicher Schlüssel (npub).
        [nprofile] Das ist ein Profil (nprofile).
        [nhalf] Das ist deine Hälfte, und sie ist geheim: Schicke sie niemandem.
        [ntweak] Das ist die Antwort des Bots.
       *[none] Das ist ein anderer Text.
    } Was hierher gehört, beginnt mit { $kind }1.
half-no-key = Diese Hälfte enthält eine Zahl, die kein Schlüssel ist. Mache eine neue Hälfte und frage noch einmal.
tweak-damaged = Diese Antwort enthält eine Zahl, die es nicht geben kann. Frage den Bot noch einmal.
tweak-other-half = Diese Antwort gehört zu einer anderen Hälfte. Füge die Hälfte ein, mit der du gefragt hast.
tweak-cancels = Diese Antwort und diese Hälfte heben sich auf, es bleibt kein Schlüssel. Mache eine neue Hälfte und frage noch einmal.
tweak-unfit =
    Das ergibt den Schlüssel { $npub }, der nicht zu { $patterns } passt. Prüfe das Muster, nach dem du gefragt hast.
    Stimmt es, dann hat der Bot falsch geantwortet: Mache eine neue Hälfte und frage noch einmal.

## About the page

about = Über diese Seite
connects-nothing = In ihrer Adresse ist kein Bot genannt, deshalb verbindet sie sich mit nichts: Ihre Content-Security-Policy verbietet es.
connects-to = Sie verbindet sich mit { $relays } und mit nichts anderem: Ihre Content-Security-Policy erlaubt nicht mehr.
about-file = Sie ist eine einzige Datei. Ihr SHA-256, wie dein Browser sie gelesen hat:
about-same = Die signierte Ankündigung des Bots nennt dieselbe Seite.
about-other = Die signierte Ankündigung des Bots nennt eine andere Seite: { $hash }. Wenn du diese nicht selbst gewählt hast, benutze sie nicht.
about-hash =
    Eine Seite, die lügt, kann jede Zahl zeigen. Bevor du ihr viel anvertraust, speichere die Datei, lass sha256sum
    rechnen und vergleiche mit den Versionshinweisen von npubbot.
about-install = Um sie als App zu haben, wähle im Menü des Browsers „Installieren“ oder „Zum Startbildschirm hinzufügen“.
