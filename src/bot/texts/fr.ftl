# French. No native reader has checked it yet.
# The messages are those of en.ftl; docs/developers/translating.md says what to mind.

language-name = Français
-example = m0ctane

## Words to type. Each is understood, and shown in the messages below.

command-help = aide
command-status = état
command-cancel = annuler
command-resend = renvoyer
command-stop = silence
command-start = commencer
command-delete = supprimer
command-split = split
command-find = trouver
command-explain = expliquer
command-language = lang

## Numbers and spans of time

decimal = ,
number-names = thousands
amount =
    { $unit ->
        [thousand] { $quantity ->
            [1] mille
           *[other] { $number } mille
        }
        [million] { $number } { $quantity ->
            [one] million
           *[other] millions
        }
        [billion] { $number } { $quantity ->
            [one] milliard
           *[other] milliards
        }
        [trillion] { $number } { $quantity ->
            [one] billion
           *[other] billions
        }
        [quadrillion] { $number } { $quantity ->
            [one] billiard
           *[other] billiards
        }
        [quintillion] { $number } { $quantity ->
            [one] trillion
           *[other] trillions
        }
       *[none] { $number }
    }
odds = Environ 1 clé sur { $amount } convient.
speed =
    { $unit ->
        [none] { $amount } clés par seconde
        [thousand] { $amount } clés par seconde
       *[other] { $amount } de clés par seconde
    }
span =
    { $unit ->
        [seconds] { $count } { $count ->
            [one] seconde
           *[other] secondes
        }
        [minutes] { $count } min
        [hours] { $count } h
        [days] { $count } jours
        [years] { $count } ans
       *[instant] moins d’une seconde
    }
span-hours-minutes = { $hours } h { $minutes } min
span-again = { $count }
takes-exactly = Cela prend { $mean }.
takes-little = Cela prend { $mean }, rarement plus de { $most }.
takes-about = Cela prend environ { $mean }, rarement plus de { $most }.

## Lists

comma = { ", " }
more = { $count } autres
list-and-more = { $list } et { $count } autres
any-of = { $list } ou { $last }, le premier trouvé

## Acceptance

accepted = Demande { $job } : je cherche { $patterns }.
no-speed-yet = Je ne connais pas encore ma vitesse. Envoyez { command-status } plus tard pour connaître la durée prévue.
queue = D’autres sont avant vous : votre tour vient dans { $span } environ.
rests-until = Mes appareils se reposent jusqu’à { $time }, puis cherchent à nouveau.
rests-now = Mes appareils se reposent en ce moment. Ils chercheront à nouveau dès que possible.
at-your-point = La recherche se fait avec votre propre moitié.
place-in-line = Sa place dans la file : { $place }.
tweak-comes = Ma partie arrivera dans cette conversation. Elle n’est pas secrète : seule votre moitié en fait la clé.
key-comes = La clé arrivera dans cette conversation.
best-likely = Elle sera sans doute aussi rare que 1 clé sur { $amount }, ou plus.
best-takes = Elle arrivera dans { $span } environ.
expensive =
    Vous pouvez garder vous-même la moitié d’une telle clé. Comment :
    { command-help } { command-split }
to-stop =
    Pour annuler, envoyez :
    { command-cancel } { $number }

## Help and status

help =
    Je trouve des clés Nostr dont le npub commence par les caractères de votre choix.
    Envoyez les caractères qui suivent npub1 :
    { -example }
    Envoyez-en plusieurs, et le premier trouvé termine la demande :
    cat dad
    Autres messages que je comprends :
    { command-status } : vos demandes
    { command-cancel } : les annuler (ou : { command-cancel } 12)
    { command-resend } : la dernière clé à nouveau
    { command-explain } : ce que je peux chercher d’autre, comme les lettres ressemblantes
    surprise : une clé avec un mot au début, pour essayer
    { command-find } gm : chercher un mot que je comprendrais autrement
    { command-stop } : je ne vous écris plus
    { command-delete } : je vous oublie
    lang en : English
    Je crée la clé sur la machine de mon opérateur. Vous pouvez en garder la moitié. Comment :
    { command-help } { command-split }
at-work = Demandes ouvertes de tous : { $jobs }. J’essaie { $speed }.
at-work-unmeasured = Demandes ouvertes de tous : { $jobs }. Je ne connais pas encore ma vitesse.
job-line = Demande { $job } : { $patterns }, depuis { $waited }.
job-line-expected =
    Demande { $job } : { $patterns }, { $waited } sur { $mean } prévus (chances : { $chance } %).
job-line-best = Demande { $job } : { $best }, depuis { $waited } ; la meilleure jusqu’ici : 1 clé sur { $amount }.
and-more-jobs = Et { $count } autres.
no-jobs =
    Vous n’avez aucune demande ouverte. Pour en lancer une, envoyez un préfixe :
    { -example }
kept-keys =
    Clés que je peux renvoyer : { $jobs }. Envoyez :
    { command-resend }

## Cancelling, and sending again

cancelled =
    { $count ->
        [one] La demande { $jobs } est annulée.
       *[other] Les demandes { $jobs } sont annulées.
    }
no-such-job = Vous n’avez aucune demande { $job } ouverte.
no-open-job = Vous n’avez aucune demande à annuler.
start-one =
    Pour en lancer une, envoyez un préfixe :
    { -example }
cancel-one =
    Les vôtres sont { $jobs }. Pour en annuler une, envoyez :
    { command-cancel } { $number }
sent-again =
    La clé de la demande { $job } est de nouveau en route.
    C’est le même message. Si votre client l’a déjà, il se trouve plus haut.
no-such-key = Je ne garde aucune clé d’une demande { $job } de vous.
no-key = Je ne garde aucune clé de vous.
resend-later = Quand une demande est terminée, { command-resend } répète son message.
resend-one =
    Je peux renvoyer { $jobs }. Envoyez :
    { command-resend } { $number }

## What is not understood

find-it = { command-find } { $prefix }
bad-word = { $word } : { $reason }.
send-only-the-prefix =
    Rien n’a été lancé. Envoyez seulement le préfixe :
    { -example }
    ou :
    { command-help }
pattern-empty = il n’y a pas de préfixe ; envoyez 1 à { $most } des caractères { $alphabet }
pattern-too-long = { $characters } caractères, c’est trop ; dans un npub on peut en choisir { $most } au plus
pattern-forbidden = « { $character } » est impossible dans un npub ; utilisez les caractères { $alphabet }
pattern-forbidden-one = « { $character } » est impossible dans un npub ; « { $first } » conviendrait
pattern-forbidden-two = « { $character } » est impossible dans un npub ; « { $first } » ou « { $second } » conviendrait
pattern-impossible = aucune clé publique ne commence ainsi ; ses { $count } premiers caractères seraient possibles
pattern-look-alike = { $reason } ; { $pattern } accepte toute écriture en caractères ressemblants
pattern-anything = toutes les clés conviennent ; donnez au moins un caractère
pattern-class = plusieurs caractères pour une même place s’écrivent [s5]
pattern-number = après { $keyword } vient un nombre de { $least } à { $most }, par exemple { $example }
pattern-number-nearest = après { $keyword } vient un nombre de { $least } à { $most } ; le plus proche est { $nearest }
pattern-hex = après hex: viennent 1 à 64 des chiffres 0 à 9 et a à f, par exemple hex:c0de
pattern-hex-one = après hex: viennent 1 à 64 des chiffres 0 à 9 et a à f ; { $first } serait possible
pattern-hex-too-long = une clé a { $most } chiffres hexadécimaux ; il y en a { $digits } ici, retirez-en { $more }
pattern-within = @ suit un mot entre étoiles et dit dans combien de caractères, par exemple *m0ct*@12
pattern-within-one = @ suit un mot entre étoiles et dit dans combien de caractères ; { $first } serait possible
pattern-too-many = avec une partie ailleurs, on peut choisir au plus { $most } caractères ; ceux-ci sont { $characters }
pattern-ending = le septième caractère avant la fin est toujours q ou s
pattern-ending-one = le septième caractère avant la fin est toujours q ou s ; { $first } serait possible
pattern-too-intricate = il y a trop de places ouvertes ; retirez-en
pattern-best = best s’écrit seul et avec une durée, comme best 10m, best zeros 10m ou best words 10m ; surprise s’écrit seul
unsupported =
    Je ne peux pas lire cela. Rien n’a été lancé.
    Pour la fin d’une clé, mettez une étoile devant : { "*m0ct" }. Pour voir ce que je comprends, envoyez :
    { command-explain }
unsupported-nearest =
    Le plus proche que je puisse faire :
    { command-find } { $nearest }
unsupported-example =
    Envoyez un préfixe, par exemple :
    { -example }
hello =
    Bonjour ! Envoyez-moi les caractères par lesquels votre npub doit commencer, par exemple :
    { -example }
search-for-it =
    Pour chercher npub1{ $prefix } lui-même, envoyez :
    { command-find } { $prefix }
secret-key =
    C’est une clé secrète. Ne la montrez à personne et ne l’utilisez plus.
    Je ne l’ai pas gardée, mais elle est passée par des relais et des clients.
    Pour obtenir une nouvelle clé, envoyez seulement le préfixe :
    { -example }
seed-answer = Un npub choisi ne peut pas venir de 12 ou 24 mots : son nsec est la sauvegarde.
nothing =
    Je ne vois aucun mot dans votre message.
    Envoyez les caractères par lesquels votre npub doit commencer :
    { -example }
    ou :
    { command-help }
text-only =
    Je lis seulement du texte, pas de fichiers.
    Envoyez les caractères par lesquels votre npub doit commencer :
    { -example }
no-groups =
    Ce message est allé à plusieurs personnes, et une clé n’est que pour vous.
    Demandez-la dans une conversation sans personne d’autre.

## Offers and frequent questions

offer-impossible = « { $character } » n’existe pas dans un npub. Rien n’est lancé. Ceci y ressemble ; pour le chercher, envoyez :
offer-accent = Un npub n’a ni accents ni signes au milieu. Rien n’est lancé. Sans eux :
offer-script = « { $character } » est une lettre d’une autre écriture qui ressemble à « { $latin } ». Rien n’est lancé. Avec la bonne :
offer-unsure = Rien n’est lancé, car je ne suis pas sûr de comprendre. Pour chercher ceci, envoyez :
offer-uneven = { $easiest } est plus de 1000 fois plus facile que le reste : vous auriez toujours celui-là. Rien n’est lancé. Pour le reste seul, envoyez :
offer-change =
    La demande { $job } continue, et rien d’autre n’est lancé. Pour la remplacer, envoyez l’un après l’autre :
    { command-cancel } { $number }
show-delete =
    Cela efface ici vos demandes et vos messages, et les clés que je pourrais renvoyer. Si c’est ce que vous voulez, envoyez :
    { command-delete }
show-stop =
    Si vous ne voulez plus de messages de ma part, envoyez :
    { command-stop }
answer-who =
    Je suis un programme qui trouve des clés Nostr dont le npub commence comme vous voulez : npubbot, logiciel libre, géré par l’opérateur de ce npub.
    Je n’écris qu’à ceux qui m’ont écrit. Pour ne plus rien recevoir, envoyez :
    { command-stop }
answer-price = C’est gratuit : je ne demande rien et je n’accepte rien.
answer-safety =
    Votre clé est créée dans la mémoire de la machine de mon opérateur et envoyée chiffrée. Faites-lui confiance autant qu’à l’opérateur.
    Mon opérateur voit votre npub et ce que vous avez demandé. Pour que ce soit oublié, envoyez :
    { command-delete }
    Vous pouvez garder vous-même la moitié de la clé. Comment :
    { command-help } { command-split }
answer-import =
    Copiez toute la ligne qui commence par nsec1 dans votre application, là où elle demande une clé privée (connexion, nsec). Puis effacez mon message.
    C’est une nouvelle identité. Une clé que vous avez déjà ne peut pas être changée : elle reste valable et garde ses abonnés.
    Pour recevoir encore la dernière clé, envoyez :
    { command-resend }
thanks-answer = Avec plaisir ! Pour une autre clé, envoyez un préfixe.
chat-answer =
    Je ne fais que trouver des clés. Envoyez-moi les caractères par lesquels votre npub doit commencer :
    { -example }
which-next =
    Laquelle ? Envoyez le préfixe entier, par exemple :
    { -example }
latin-letters =
    Un npub n’a que des lettres latines et des chiffres. Écrivez-le avec ceux-ci, par exemple :
    { "~hanako" }
foreign-language = Je ne connais pas cette langue. Je réponds en { $names }.
other-job =
    La demande { $job } continue aussi. Pour l’arrêter, envoyez :
    { command-cancel } { $number }
page = Il y a aussi une page : { $url }

## Patterns

means = { $pattern } : { $meaning }.
meaning-start = commence par npub1{ $text }
meaning-alike = commence par npub1 et une écriture qui ressemble à « { $text } »
meaning-middle =
    { $from ->
        [start] contient ensuite { $text } n’importe où
       *[npub] contient { $text } n’importe où après npub1
    }
meaning-within = contient { $text } dans les { $count } premiers caractères après npub1
meaning-end = finit par { $text } (somme de contrôle comprise)
spelling = une écriture qui ressemble à « { $text } »
meaning-equal = commence par npub1 et { $count } caractères égaux
meaning-equal-anywhere = contient { $count } caractères égaux de suite
meaning-hex-start = sa clé publique en hexadécimal commence par { $text }
meaning-hex-end = sa clé publique en hexadécimal finit par { $text }
meaning-zeros = bits nuls au début de sa clé publique : { $count }
meaning-words = commence par npub1 et un mot de ma liste de { $count } lettres ou plus
meaning-best =
    la clé la plus rare d’une recherche de { $span }, selon { $family ->
        [zeros] les bits nuls au début
        [words] le mot de ma liste au début
       *[any] les bits nuls, les caractères égaux ou le mot au début
    }
open-place = ? est n’importe quel caractère
one-of = un des caractères entre crochets
looks-alike =
    Ceci ressemble et prend { $span } :
    { command-find } { $pattern }
needs-start = Je ne peux pas chercher cela : trop peu se trouve au début d’une clé.
nothing-started = Rien n’a été lancé.
too-wide =
    Cela permet { $asked } débuts de clé différents, et j’en accepte au plus { $allowed } par demande.
    Rien n’a été lancé. Envoyez moins de motifs, ou avec moins de places ouvertes.
too-many-ends =
    Des motifs qui disent peu du début d’une clé, j’en accepte au plus { $allowed } par demande. La vôtre en a { $asked }.
    Rien n’a été lancé. Envoyez moins de motifs, ou avec plus de caractères au début.
too-wide-now =
    Je cherche en ce moment tant de débuts différents que je ne peux accepter que des motifs simples.
    Rien n’a été lancé. Réessayez plus tard, ou envoyez un préfixe :
    { -example }
explain-find =
    Pour le chercher, envoyez :
    { command-find } { $pattern }
kinds =
    Je cherche des clés selon ces motifs :
    { -example } : ces caractères après npub1
    m0?tane : ? est n’importe quel caractère
    { "[s5]at0sh" } : un des caractères entre crochets
    { "~m0ctane" } : toute écriture en caractères ressemblants
    =7 : sept caractères égaux
    hex:c0de : la clé publique en hexadécimal
    zeros:24 : bits nuls au début de la clé publique
    words:8 : un mot de ma liste de 8 lettres ou plus
    best 10m : la clé la plus rare en dix minutes
    surprise : le mot le plus long en dix secondes
    Pour savoir ce qu’un motif signifie et combien de temps il prend, envoyez :
    { command-explain } { "~m0ctane" }

## Limits

too-many-prefixes =
    Cela fait { $asked } mots, et j’accepte au plus { $allowed } { $allowed ->
        [one] préfixe
       *[other] préfixes
    } par demande.
    Envoyez au plus { $allowed } préfixes, ceux que vous préférez.
already-searching =
    Je cherche déjà exactement cela, dans la demande { $job }.
    Pour voir où elle en est, envoyez :
    { command-status }
    Pour l’annuler, envoyez :
    { command-cancel } { $number }
result-not-taken =
    Une clé que j’ai trouvée pour vous est encore ici : aucun de vos relais ne l’a acceptée. Rien n’a été lancé.
    Si vos relais acceptent maintenant mes messages, envoyez :
    { command-resend }
too-many-not-taken = Je garde tant de clés que personne ne retire que je ne peux rien lancer pour de nouvelles personnes. Réessayez plus tard.
too-many-open =
    Vous avez { $count } { $count ->
        [one] demande ouverte
       *[other] demandes ouvertes
    } ({ $jobs }) ; la limite est { $allowed }.
    Attendez la fin de l’une, ou annulez-en une :
    { command-cancel } { $number }
too-many-today =
    Vous avez lancé { $allowed } { $allowed ->
        [one] demande
       *[other] demandes
    } ces dernières 24 heures, et c’est la limite.
    La suivante sera possible dans { $span }.
too-hard = Cela prendrait environ { $span }. Je n’accepte rien qui prenne plus de { $limit }.
too-hard-all = Je ne peux accepter aucune demande pour l’instant. Réessayez plus tard.
too-hard-up-to =
    Pour l’instant j’accepte jusqu’à { $characters } { $characters ->
        [one] caractère
       *[other] caractères
    }.
best-too-long =
    Je cherche la clé la plus rare pendant { $limit } au plus. Rien n’a été lancé. Envoyez :
    { command-find } { $best }
not-measured =
    Je ne connais pas ma vitesse pour l’instant, et ne peux donc pas dire combien de temps cela prend.
    Pour l’instant j’accepte jusqu’à { $characters } { $characters ->
        [one] caractère
       *[other] caractères
    }. Pour plus, réessayez dans une minute.
needs-sealed =
    Votre client a envoyé un ancien type de message (NIP-04). Je ne traite que les messages NIP-17.
    Écrivez-moi depuis un client qui les envoie, comme Amethyst, 0xchat, Coracle ou Nostur, et laissez-le publier vos relais de messages.
needs-sealed-page = Ou utilisez ma page, sans client : { $page }
friends-only = Ce bot ne cherche que pour les amis de son opérateur.
restored =
    J’ai été restauré d’une sauvegarde après ce message, et j’y ai peut-être déjà répondu.
    Si vous le voulez encore, envoyez-le de nouveau. Pour une clé scindée, créez d’abord une nouvelle moitié.
price =
    Beaucoup de gens me demandent des clés en ce moment, donc cela coûte un peu de travail à votre appareil : { $bits } bits de preuve de travail, environ { $span } sur un téléphone. Rien n’a été lancé.
price-page = Ma page fait le travail pour vous : { $page }
price-command =
    Sur un ordinateur avec npubbot, cette commande le fait :
    { $command }
    Renvoyez ensuite votre demande, avec la ligne qu’elle affiche. Ou réessayez plus tard.
work-alone =
    C’est la preuve de travail. Envoyez-la dans un seul message avec votre demande, par exemple :
    { -example }
    work …
paused =
    Cela fait beaucoup de messages. Je réponds de nouveau à { $time }.
    Vos demandes ouvertes continuent.

## Split keys

split-help =
    Gardez la moitié de la clé : ma réponse ne sert alors à personne d’autre que vous.
    Sur votre machine, créez une moitié secrète (ou utilisez la page web fournie avec npubbot) :
    npubbot split new { -example }
    Envoyez-moi la ligne affichée :
    split HALF { -example }
    Je réponds par ma partie, qui n’est pas secrète. Votre moitié et ma partie forment la clé :
    npubbot combine
bad-point = Je ne peux pas utiliser cette moitié publique : { $reason }.
no-point = Je n’y vois aucune moitié publique.
send-a-point =
    Rien n’a été lancé. Envoyez :
    split HALF { -example }
    Comment en créer une :
    { command-help } { command-split }
point-not-a-point = une moitié publique fait 66 chiffres hexadécimaux commençant par 02 ou 03, ou bien c’est un npub
point-not-on-curve = ces chiffres ne sont pas une moitié publique, il manque donc quelque chose ou il y a une faute ; copiez tout
point-damaged = la somme de contrôle du npub est fausse, il manque donc quelque chose ou il y a une faute ; copiez tout
point-alone =
    Je vois votre moitié, mais pas de préfixe. Rien n’a été lancé.
    Envoyez les deux dans un message :
    split HALF { -example }
    Comment ça marche :
    { command-help } { command-split }
half-used =
    { $use ->
        [open] Une recherche est déjà en cours avec cette moitié, ou une moitié apparentée.
       *[spent] Cette moitié, ou une moitié apparentée, a déjà servi pour une clé.
    }
    Deux clés d’une même moitié se trahissent : qui a l’une trouve l’autre.
    Créez une nouvelle moitié pour chaque clé :
    npubbot split new

## Stop, start, delete, language

stopped =
    Je ne vous écris plus.
    Pour avoir de nouveau de mes nouvelles, envoyez :
    { command-start }
stopped-cancelled =
    { $open ->
        [one] Votre demande ouverte est annulée.
       *[other] Vos { $open } demandes ouvertes sont annulées.
    } Je ne vous écris plus.
    Pour avoir de nouveau de mes nouvelles, envoyez :
    { command-start }
started =
    Me revoici. Envoyez un préfixe :
    { -example }
    ou :
    { command-help }
forgotten =
    C’est fait : vos demandes{ $open ->
        [0] {""}
       *[other] {" "}(les ouvertes sont annulées)
    } et vos messages sont effacés de mon registre, avec les clés que j’aurais pu renvoyer.
    Les numéros de vos messages disparaissent d’ici 9 jours ; jusque-là, ils évitent que je réponde de nouveau à d’anciennes copies.
    Les heures des demandes des dernières 24 heures restent ce temps-là : elles comptent pour la limite par jour.
language-set =
    Je réponds maintenant en français.
    Envoyez un préfixe :
    { -example }
    ou :
    { command-help }
languages = Je réponds dans ces langues. Envoyez une de ces lignes :
choose-language = lang { $code } ({ $name })

## Results and notices

found-prefix = Ce npub commence par npub1{ $pattern }
found-met = Ce npub contient { $met }, qui correspond à { $pattern }
found-word = Ce npub commence par npub1{ $met }, qui se lit « { $word } »
found-fits = Ce npub correspond à { $pattern }
found-after = La demande { $job } est terminée, en { $waited }. { $fits } :
found-best = La demande { $job } est terminée : voici la clé la plus rare que j’ai vue. { $fits }, comme 1 clé sur { $amount } :
key-found =
    { $heading }
    { $npub }
    Mon prochain message est sa clé secrète et rien d’autre : copiez-le en entier.
    Qui la possède est cette identité. Gardez-la bien et ne la montrez à personne.
    Elle a été créée sur la machine de mon opérateur : fiez-vous à elle autant qu’à l’opérateur.
    Pour recevoir les deux messages à nouveau, envoyez :
    { command-resend }
tweak-found =
    { $heading }
    { $npub }
    Mon prochain message est ma partie et rien d’autre : copiez-le en entier. Elle n’est pas secrète.
    Avec votre moitié, elle forme la clé :
    npubbot combine
    Votre moitié a servi. Créez-en une nouvelle pour la prochaine clé.
tips = Si elle te plaît, les pourboires pour mon opérateur vont à { $address }
apology =
    Quelque chose s’est mal passé de mon côté avec ce message. Rien n’a été lancé.
    C’est noté dans le journal de mon opérateur. Dites-le autrement, ou envoyez :
    { command-help }
late =
    La demande { $job } prend plus de temps que prévu : { $waited } jusqu’ici.
    C’est de la malchance ou un jour lent. Je continue { $left } au plus ; vous n’avez rien à faire.
    Pour annuler, envoyez :
    { command-cancel } { $number }
lost =
    La demande { $job } est abandonnée : j’ai été restauré d’une sauvegarde, et votre moitié a peut-être déjà servi. Deux clés d’une même moitié se trahissent.
    Créez une nouvelle moitié et envoyez-moi la ligne qui s’affiche : npubbot split new
given-up =
    La demande { $job } est abandonnée : en { $span }, je n’ai trouvé { $patterns ->
        [one] pas son préfixe
       *[other] aucun de ses { $patterns } préfixes
    }.
    Envoyez-en un plus court, ou le même pour réessayer.
