# The page in French. No native reader has checked it yet.
# The messages are those of en.ftl; docs/developers/translating.md says what to mind.

text-direction = ltr
sentence = { $text }.

## The first screen

page-title = npubbot : choisissez votre npub
page-title-found = npubbot : votre clé est là
heading = Une clé Nostr avec vos lettres
lead-nostr =
    Nostr est un réseau de publications et de messages qui n’appartient à personne. Votre npub y est votre nom public,
    et votre nsec en est la clé secrète.
lead-half = La moitié du secret est créée dans ce navigateur et y reste. Personne d’autre que vous ne peut donc avoir la clé.
language = Langue
ask-title = Par quoi votre npub doit-il commencer ?
characters-help = Lettres minuscules et chiffres. Les caractères 1, b, i et o n’existent pas dans un npub.
more-patterns = Autres motifs
several-help = Écrivez-en plusieurs, séparés par des espaces, pour obtenir le premier trouvé.
find-key = Trouver ma clé
searching-bot = Recherche du bot…
bot-found = Vous demandez à { $bot }, { $npub }…, par { $relays }.
bot-asleep = { $bot } est hors ligne. Vous pouvez demander : la réponse viendra à son retour. Gardez votre demande jusque-là.
relays-dead = Aucun des relais de ce lien n’est joignable. Vérifiez votre connexion et réessayez, ou procurez-vous un nouveau lien.
bot-unknown = Le bot n’est pas encore trouvé. Attendez un instant, ou réessayez.
the-bot = le bot
try-again = Réessayer
open-file = Ouvrir une demande enregistrée dans un fichier
use = Utiliser { $pattern }
spellings = Autres écritures à toucher

rarity-later = Le bot dira si c’est rare et combien de temps cela prend.
time-later = Le bot dira combien de temps cela prend.
best-time = Le bot cherche pendant { $span } et dit combien la clé est rare.
too-long = Cela prendrait environ { $span }, et ce bot cherche { $limit } au plus. Raccourcissez.
too-long-fits = Cela prendrait environ { $span }, et ce bot cherche { $limit } au plus. Ceci convient :
no-pattern = Écrivez les caractères qui doivent suivre npub1, par exemple m0ctane

## Links

link-nsec = C’est une clé secrète (nsec). Ne la montrez à personne et ne la collez nulle part. Pour demander à un bot, collez son npub.
link-none = Aucun bot n’est nommé ici. Collez le npub1… du bot ou son lien.
link-damaged = Le npub du bot est abîmé : il manque une partie, ou elle est mal tapée. Copiez à nouveau le lien entier.
address-nsec = Il y avait une clé secrète (nsec) dans cette adresse, et d’autres l’ont peut-être vue. N’utilisez plus cette clé, et créez-en une nouvelle.
no-bot-title = Laisser cette page demander pour vous
bot-label = Le npub ou le lien du bot
bot-help = La page se connecte alors aux relais du bot, et à rien d’autre.
open = Ouvrir

## Waiting

request-title = Votre demande : { $patterns }
step-wait = En attente du bot
step-search = Recherche
step-found = Trouvée
step-done = {" "}: fait
step-now = {" "}: en cours
chance-key = Probabilité que la clé soit déjà trouvée
chance-work = Probabilité que le travail soit déjà fait
part-over = Part du temps écoulée
connecting = Connexion…
relays-gone = Aucun relais n’est joignable en ce moment. La page continue d’essayer ; vérifiez votre connexion.
sending = Envoi de votre demande…
waiting = En attente de la réponse du bot…
no-answer = Le bot n’a pas encore répondu. Il est peut-être occupé ou hors ligne. Gardez votre demande ci-dessous, et revenez plus tard.
searching = Le bot cherche (tâche { $job }).
refused = Rien n’a été lancé. Lisez ce que dit le bot, et demandez autre chose.
stopping = Le bot est prié d’arrêter…
stopped = Arrêtée. Vous pouvez demander autre chose.
working = Beaucoup de gens demandent en ce moment, le bot veut donc d’abord un peu de travail. Votre navigateur le fait.
worked = Le travail est fait. En attente de la réponse du bot…
work-percent = { $percent } sur 100 faits, encore environ { $span }.
work-percent-only = { $percent } sur 100 faits.
so-far = { $elapsed } jusqu’ici.
so-far-of = { $elapsed } jusqu’ici sur { $time }.
so-far-expected = { $elapsed } jusqu’ici, environ { $time } attendus.
so-far-late = { $elapsed } jusqu’ici, environ { $time } attendus. C’est long, et la clé peut arriver à tout moment.
bot-says = Ce que dit le bot
stop-search = Arrêter la recherche
ask-again = Demander autre chose

## Keeping a request

keep-title = Voulez-vous fermer cette page en attendant ?
keep-why = Votre moitié du secret n’est que dans cet onglet. Gardez-la sous une phrase de passe, et vous pourrez revenir chercher la clé.
keep-passphrase = Une phrase de passe que vous retiendrez
keep-here = Garder dans ce navigateur
keep-file = Enregistrer dans un fichier
is-kept = Cette demande est gardée. Vous pouvez fermer la page et revenir.
kept-here = Gardée dans ce navigateur. Vous pouvez fermer la page, et revenir avec votre phrase de passe.
kept-file = Enregistrée, sauf si votre navigateur vous l’a demandé et que vous avez refusé. Vous pouvez fermer la page, et revenir avec votre phrase de passe.
kept-title = Reprendre où vous en étiez
kept-requests = Vos demandes enregistrées
kept-asked = demandée le { $when }
saved-file = Un fichier enregistré
its-passphrase = Sa phrase de passe
go-on = Continuer
delete-kept = Supprimer cette demande
delete-sure = Supprimer cette demande ? Sans elle, la réponse du bot ne vaut rien.
no-passphrase = Il n’y a pas encore de phrase de passe. Écrivez-en une.
wrong-passphrase = Mauvaise phrase de passe. Réessayez.
file-damaged = Ce fichier est abîmé, ou n’est pas de cette page. Choisissez-en un autre.
file-large = Ce fichier est trop grand pour être de cette page. Choisissez-en un autre.
file-none = Aucun fichier n’est encore choisi.
kept-many = Ce navigateur garde déjà { $count } demandes. Enregistrez celle-ci dans un fichier.
keeps-nothing = Ce navigateur ne garde rien pour cette page. Enregistrez plutôt un fichier.
no-request = Ce n’est pas une demande enregistrée, ou elle est abîmée.
slow = En cours : c’est lent exprès.
no-memory = Cela n’a pas marché, peut-être faute de mémoire. Fermez d’autres onglets et réessayez.
went-wrong = Une erreur s’est produite. Rechargez la page.

## The key

done-title = Votre clé est là
npub-label = Public : votre npub
nsec-label = Secret : votre nsec
nsec-warning = Enregistrez-le maintenant dans votre gestionnaire de mots de passe. Qui le possède est vous, et personne ne peut vous le rendre s’il est perdu.
save-nsec = Enregistrer dans le gestionnaire de mots de passe
copy = Copier
copy-npub = Copier
    .aria-label = Copier votre npub
copy-nsec = Copier
    .aria-label = Copier votre nsec
copy-ncryptsec = Copier
    .aria-label = Copier votre ncryptsec
show = Montrer
hide = Cacher
print = Imprimer une feuille
print-title = Clé Nostr : gardez cette feuille là où personne d’autre ne la voit
copied = Copié.
copy-selected = Votre navigateur ne laisse pas la page copier. Le texte est sélectionné : copiez-le vous-même.
copy-shown = Votre navigateur ne laisse pas la page copier. Montrez le texte et copiez-le vous-même.
save-asked = Votre navigateur a été prié de l’enregistrer. S’il ne l’a pas proposé, utilisez « Copier ».
save-refused = Votre navigateur ne l’enregistre pas pour cette page. Utilisez « Copier », et collez-le dans votre gestionnaire de mots de passe.
qr-note = La même chose en code QR, pour un autre de vos appareils. Qui le photographie a votre clé.
qr-nsec = Code QR de votre nsec
qr-message = Code QR du message
ncryptsec-title = Avec un mot de passe (ncryptsec)
ncryptsec-lead = Pour les applications qui prennent une clé chiffrée. Sans le mot de passe elle ne vaut rien, pour vous non plus.
password = Mot de passe
no-password = Il n’y a pas encore de mot de passe. Écrivez-en un.
encrypt = Chiffrer
encrypted = Chiffrée.
ncryptsec-label = Votre ncryptsec
apps-title = L’utiliser dans une application
apps-lead = Ouvrez-en une, choisissez « se connecter », et collez votre nsec :
app-primal = Primal : téléphones et web
app-amethyst = Amethyst : Android ; prend aussi un ncryptsec
app-damus = Damus : iPhone
app-coracle = Coracle : web
app-device = L’application Nostr de cet appareil
new-account = C’est un nouveau compte. Les abonnés d’un ancien ne suivent pas : donnez-leur votre nouveau npub.
half-served = Votre moitié a servi. Ne l’utilisez jamais pour une autre clé : qui possède l’une des deux peut calculer l’autre.
half-served-twice =
    ATTENTION : cette moitié a déjà donné une autre clé. Qui possède l’une des deux peut calculer l’autre. N’en utilisez
    qu’une, et créez une nouvelle moitié pour la suivante.
other-answer =
    Le bot a déjà envoyé une autre réponse à cette demande. Deux clés d’une même moitié se trahissent l’une l’autre,
    celle-ci est donc refusée. Demandez à nouveau.
tab-holds = Cet onglet garde votre clé jusqu’à ce que vous la fassiez oublier, ou que vous le fermiez.
forget = J’ai enregistré ma clé : tout oublier ici
forget-sure = Vous n’avez ni copié, ni montré, ni enregistré votre clé. Sans elle, personne ne peut utiliser le npub. L’oublier ?
forgotten = Oublié : il ne reste rien de cette demande dans ce navigateur.
clipboard-has = Votre presse-papiers a encore la clé.
clear-clipboard = Vider le presse-papiers
clipboard-cleared = Le presse-papiers est vidé. Un historique du presse-papiers peut encore l’avoir.
clipboard-stays = Votre navigateur ne laisse pas la page le faire. Copiez autre chose.

leave-key = Vous n’avez ni copié, ni montré, ni enregistré votre clé. Suivre l’adresse modifiée ?
leave-half = Votre moitié n’est pas gardée. Sa réponse serait perdue. Suivre l’adresse modifiée ?
again-sure = Vous n’avez pas gardé cette demande. Le bot est prié d’arrêter, et sa réponse serait perdue. Continuer ?

## By hand

manual-title = À la main : hors ligne, avec votre propre compte Nostr
manual-lead =
    Créez la moitié ici, envoyez le message vous-même, et revenez avec la réponse du bot. Cela marche hors ligne :
    enregistrez cette page et ouvrez-la sans réseau si vous voulez.
manual-ask = Demander
manual-make = Créer ma moitié
half-title = Gardez votre moitié
half-warning =
    Secrète, et nécessaire plus tard. La recherche peut prendre des jours, et cette page oublie la moitié en se fermant.
    Sans elle, la réponse ne vaut rien. Elle ne sert qu’à une demande : créez-en une nouvelle pour la suivante.
half-label = Votre moitié
copy-half = Copier
    .aria-label = Copier votre moitié
half-passphrase = Ou dans un fichier, sous une phrase de passe
half-saved = Enregistrée, sauf si votre navigateur vous l’a demandé et que vous avez refusé.
half-kept = J’ai gardé ma moitié en lieu sûr
half-replace = Vous n’avez pas gardé la moitié précédente. La remplacer ? Une réponse pour elle serait perdue.
send-title = Envoyez ceci au bot
send-lead = En message direct, de n’importe quel compte Nostr. Rien n’y est secret.
message-label = Message
copy-message = Copier
    .aria-label = Copier le message
send-then = Le bot répond par un texte qui commence par ntweak1. Revenez avec lui à l’étape 2.
work-title = Un bot demande du travail
work-answer = La réponse du bot
work-help =
    Collez toute la réponse. Votre navigateur fait le travail, et vous envoyez la ligne qu’il produit dans un seul
    message avec votre demande. Laissez cette page ouverte ; cela marche sans connexion.
work-line = La ligne à envoyer
copy-line = Copier la ligne
work-do = Faire le travail
work-stop = Arrêter
work-stopped = Arrêté.
work-added = C’est fait. Envoyez la ligne dans un seul message avec votre demande. Elle compte une fois, aujourd’hui.
work-none = Il n’y a pas de ligne « npubbot work … » avec un nombre jusqu’à { $most }. Collez toute la réponse du bot.
manual-finish = Terminer
half-in-file = Ma moitié est dans un fichier
the-file = Le fichier
file-passphrase = La phrase de passe du fichier
open-file-button = Ouvrir le fichier
half-opened = Ouvert. Collez maintenant la réponse du bot.
answer-label = La réponse du bot
asked-for = Le motif que vous avez demandé (vérifié s’il est donné)
make-key = Former ma clé

## Texts that are pasted

text-missing =
    { $kind ->
        [nhalf] Votre moitié manque. Collez le texte qui commence par nhalf1.
       *[ntweak] La réponse du bot manque. Collez le texte qui commence par ntweak1.
    }
text-damaged =
    { $kind ->
        [nhalf] Cette moitié est abîmée
       *[ntweak] Cette réponse est abîmée
    } : il manque une partie, ou elle est mal tapée. Copiez à nouveau tout le texte { $kind }1….
text-version = Ce texte { $kind }1… a la version { $version }, et cette page lit la version 1. Procurez-vous une copie plus récente de la page.
text-several = Il y a { $count } textes { $kind }1… dedans. Collez-en un.
text-other =
    { $other ->
        [nsec] C’est une clé secrète (nsec). Ne la collez nulle part sans nécessité.
        [ncryptsec] C’est une clé secrète chiffrée (ncryptsec).
        [npub] C’est une clé publique (npub).
        [nprofile] C’est un profil (nprofile).
        [nhalf] C’est votre moitié, qui est secrète : ne l’envoyez jamais à personne.
        [ntweak] C’est la réponse du bot.
       *[none] C’est un autre texte.
    } Ce qui va ici commence par { $kind }1.
half-no-key = Cette moitié contient un nombre qui n’est pas une clé. Créez une nouvelle moitié et demandez à nouveau.
tweak-damaged = Cette réponse contient un nombre impossible. Demandez à nouveau au bot.
tweak-other-half = Cette réponse est faite pour une autre moitié. Collez la moitié avec laquelle vous avez demandé.
tweak-cancels = Cette réponse et cette moitié s’annulent, il ne reste aucune clé. Créez une nouvelle moitié et demandez à nouveau.
tweak-unfit =
    La clé obtenue est { $npub }, qui ne convient pas à { $patterns }. Vérifiez le motif que vous avez demandé. S’il est
    juste, le bot a mal répondu : créez une nouvelle moitié et demandez à nouveau.

## About the page

about = À propos de cette page
connects-nothing = Son adresse ne nomme aucun bot, elle ne se connecte donc à rien : sa politique de sécurité du contenu l’interdit.
connects-to = Elle se connecte à { $relays }, et à rien d’autre : sa politique de sécurité du contenu ne permet pas plus.
about-file = C’est un seul fichier. Son SHA-256, tel que votre navigateur l’a lu :
about-same = L’annonce signée du bot nomme la même page.
about-other = L’annonce signée du bot nomme une autre page : { $hash }. Si vous n’avez pas choisi celle-ci vous-même, ne l’utilisez pas.
about-hash =
    Une page qui ment peut montrer n’importe quel nombre. Avant de lui confier beaucoup, enregistrez le fichier, laissez
    sha256sum calculer, et comparez avec les notes de version de npubbot.
about-install = Pour l’avoir comme application, choisissez « Installer » ou « Ajouter à l’écran d’accueil » dans le menu du navigateur.
