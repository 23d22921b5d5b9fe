# The page in Spanish. No native reader has checked it yet.
# The messages are those of en.ftl; docs/developers/translating.md says what to mind.

text-direction = ltr
sentence = { $text }.

## The first screen

page-title = npubbot: elige tu npub
page-title-found = npubbot: tu clave está aquí
heading = Una clave de Nostr con tus letras
lead-nostr =
    Nostr es una red de publicaciones y mensajes que no pertenece a nadie. Tu npub es tu nombre público en ella, y tu
    nsec es su clave secreta.
lead-half = La mitad del secreto se crea en este navegador y se queda aquí. Así nadie más que tú puede tener la clave.
language = Idioma
ask-title = ¿Con qué debe empezar tu npub?
characters-help = Letras minúsculas y cifras. Los caracteres 1, b, i y o no existen en un npub.
more-patterns = Más patrones
several-help = Escribe varios, separados por espacios, para obtener el que se encuentre primero.
find-key = Encontrar mi clave
searching-bot = Buscando el bot…
bot-found = Preguntas a { $bot }, { $npub }…, a través de { $relays }.
bot-asleep = { $bot } no está en línea ahora. Puedes pedir: responderá cuando vuelva. Guarda tu petición hasta entonces.
relays-dead = No se puede llegar a ninguno de los relays de este enlace. Comprueba tu conexión e inténtalo otra vez, o consigue un enlace nuevo.
bot-unknown = Aún no se ha encontrado el bot. Espera un momento o inténtalo otra vez.
the-bot = el bot
try-again = Intentar otra vez
open-file = Abrir una petición guardada como archivo
use = Usar { $pattern }
spellings = Otras formas de escribirlo

rarity-later = El bot dirá lo raro que es y cuánto tarda.
time-later = El bot dirá cuánto tarda.
best-time = El bot busca durante { $span } y dice lo rara que es la clave.
too-long = Tardaría aproximadamente { $span }, y este bot busca como mucho { $limit }. Acórtalo.
too-long-fits = Tardaría aproximadamente { $span }, y este bot busca como mucho { $limit }. Esto sí cabe:
no-pattern = Escribe los caracteres que deben seguir a npub1, por ejemplo m0ctane

## Links

link-nsec = Esto es una clave secreta (nsec). No se la enseñes a nadie ni la pegues en ningún sitio. Para preguntar a un bot, pega su npub.
link-none = Aquí no se nombra ningún bot. Pega el npub1… del bot o su enlace.
link-damaged = El npub del bot está dañado: falta una parte o hay una errata. Copia otra vez el enlace entero.
address-nsec = Había una clave secreta (nsec) en esta dirección, y puede que otros la hayan visto. Deja de usar esa clave y crea una nueva.
no-bot-title = Deja que esta página pida por ti
bot-label = El npub o el enlace del bot
bot-help = Entonces la página se conecta a los relays del bot, y a nada más.
open = Abrir

## Waiting

request-title = Tu petición: { $patterns }
step-wait = Esperando al bot
step-search = Buscando
step-found = Encontrada
step-done = : hecho
step-now = : ahora
chance-key = Probabilidad de que la clave ya se haya encontrado
chance-work = Probabilidad de que el trabajo ya esté hecho
part-over = Parte del tiempo que ha pasado
connecting = Conectando…
relays-gone = No se puede llegar a ningún relay ahora. La página sigue intentándolo; comprueba tu conexión.
sending = Enviando tu petición…
waiting = Esperando la respuesta del bot…
no-answer = El bot aún no ha respondido. Puede que esté ocupado o desconectado. Guarda tu petición abajo y vuelve más tarde.
searching = El bot está buscando (trabajo { $job }).
refused = No se ha iniciado nada. Lee lo que dice el bot y pide otra cosa.
stopping = Se le pide al bot que pare…
stopped = Detenida. Puedes pedir otra cosa.
working = Mucha gente pide ahora, así que el bot quiere antes algo de trabajo. Tu navegador lo hace.
worked = El trabajo está hecho. Esperando la respuesta del bot…
work-percent = { $percent } de 100 hechos, quedan aproximadamente { $span }.
work-percent-only = { $percent } de 100 hechos.
so-far = { $elapsed } hasta ahora.
so-far-of = { $elapsed } hasta ahora, de { $time }.
so-far-expected = { $elapsed } hasta ahora; se esperan aproximadamente { $time }.
so-far-late = { $elapsed } hasta ahora; se esperaban aproximadamente { $time }. Está tardando, y puede llegar en cualquier momento.
bot-says = Lo que dice el bot
stop-search = Parar la búsqueda
ask-again = Pedir otra cosa

## Keeping a request

keep-title = ¿Quieres cerrar esta página mientras tanto?
keep-why = Tu mitad del secreto solo está en esta pestaña. Guárdala con una frase de paso y podrás volver a por la clave.
keep-passphrase = Una frase de paso que recuerdes
keep-here = Guardar en este navegador
keep-file = Guardar como archivo
is-kept = Esta petición está guardada. Puedes cerrar la página y volver.
kept-here = Guardada en este navegador. Puedes cerrar la página y volver con tu frase de paso.
kept-file = Guardada, salvo que el navegador te preguntara y dijeras que no. Puedes cerrar la página y volver con tu frase de paso.
kept-title = Sigue donde estabas
kept-requests = Tus peticiones guardadas
kept-asked = pedida el { $when }
saved-file = Un archivo guardado
its-passphrase = Su frase de paso
go-on = Seguir
delete-kept = Borrar esta petición
delete-sure = ¿Borrar esta petición? Sin ella, la respuesta del bot no vale nada.
no-passphrase = Aún no hay frase de paso. Escribe una.
wrong-passphrase = Frase de paso incorrecta. Inténtalo otra vez.
file-damaged = Este archivo está dañado o no es de esta página. Elige otro.
file-large = Este archivo es demasiado grande para ser de esta página. Elige otro.
file-none = Aún no se ha elegido ningún archivo.
kept-many = Este navegador ya guarda { $count } peticiones. Guarda esta como archivo.
keeps-nothing = Este navegador no guarda nada para esta página. Guarda un archivo.
no-request = Esto no es una petición guardada, o está dañada.
slow = Trabajando: es lento a propósito.
no-memory = No ha funcionado, quizá por falta de memoria. Cierra otras pestañas e inténtalo otra vez.
went-wrong = Algo ha ido mal. Recarga la página.

## The key

done-title = Tu clave está aquí
npub-label = Público: tu npub
nsec-label = Secreto: tu nsec
nsec-warning = Guárdalo ahora en tu gestor de contraseñas. Quien lo tiene eres tú, y nadie puede devolvértelo si se pierde.
save-nsec = Guardar en el gestor de contraseñas
copy = Copiar
copy-npub = Copiar
    .aria-label = Copiar tu npub
copy-nsec = Copiar
    .aria-label = Copiar tu nsec
copy-ncryptsec = Copiar
    .aria-label = Copiar tu ncryptsec
show = Mostrar
hide = Ocultar
print = Imprimir una hoja
print-title = Clave de Nostr: guarda esta hoja donde nadie más la vea
copied = Copiado.
copy-selected = Tu navegador no deja copiar a la página. El texto está seleccionado: cópialo tú.
copy-shown = Tu navegador no deja copiar a la página. Muestra el texto y cópialo tú.
save-asked = Se le ha pedido al navegador que lo guarde. Si no lo ha ofrecido, usa Copiar.
save-refused = Tu navegador no lo guarda para esta página. Usa Copiar y pégalo en tu gestor de contraseñas.
qr-note = Lo mismo como código QR, para otro dispositivo tuyo. Quien lo fotografíe tiene tu clave.
qr-nsec = Código QR de tu nsec
qr-message = Código QR del mensaje
ncryptsec-title = Con contraseña (ncryptsec)
ncryptsec-lead = Para las apps que aceptan una clave cifrada. Sin la contraseña no vale nada, tampoco para ti.
password = Contraseña
no-password = Aún no hay contraseña. Escribe una.
encrypt = Cifrar
encrypted = Cifrada.
ncryptsec-label = Tu ncryptsec
apps-title = Úsala en una app
apps-lead = Abre una, elige «iniciar sesión» y pega tu nsec:
app-primal = Primal: móviles y web
app-amethyst = Amethyst: Android; también acepta un ncryptsec
app-damus = Damus: iPhone
app-coracle = Coracle: web
app-device = La app de Nostr de este dispositivo
new-account = Esta es una cuenta nueva. Los seguidores de una anterior no vienen con ella: diles tu nuevo npub.
half-served = Tu mitad ya se ha usado. No la uses nunca para otra clave: quien tenga una de las dos puede calcular la otra.
half-served-twice =
    ATENCIÓN: esta mitad ya formó otra clave. Quien tenga una de las dos puede calcular la otra. Usa solo una, y crea
    una mitad nueva para la próxima.
other-answer =
    El bot ya envió antes otra respuesta a esta petición. Dos claves de una mitad se delatan la una a la otra, así que
    esta se rechaza. Pide otra vez.
tab-holds = Esta pestaña guarda tu clave hasta que la hagas olvidar o la cierres.
forget = He guardado mi clave: olvidarlo todo aquí
forget-sure = No has copiado, mostrado ni guardado tu clave. Sin ella nadie puede usar el npub. ¿Olvidarla?
forgotten = Olvidado: no queda nada de esta petición en este navegador.
clipboard-has = Tu portapapeles aún tiene la clave.
clear-clipboard = Vaciar el portapapeles
clipboard-cleared = El portapapeles está vacío. Un historial del portapapeles aún puede tenerla.
clipboard-stays = Tu navegador no deja hacerlo a la página. Copia otra cosa.

leave-key = No has copiado, mostrado ni guardado tu clave. ¿Seguir la dirección cambiada?
leave-half = Tu mitad no está guardada. Se perdería la respuesta. ¿Seguir la dirección cambiada?
again-sure = No has guardado esta petición. Se le pide al bot que pare, y su respuesta se perdería. ¿Seguir?

## By hand

manual-title = A mano: sin conexión, con tu propia cuenta de Nostr
manual-lead =
    Crea aquí la mitad, envía tú el mensaje y vuelve con la respuesta del bot. Funciona sin conexión: guarda esta página
    y ábrela sin red si quieres.
manual-ask = Pedir
manual-make = Crear mi mitad
half-title = Guarda tu mitad
half-warning =
    Es secreta, y hace falta después. La búsqueda puede tardar días, y esta página olvida la mitad al cerrarse. Sin ella
    la respuesta no vale nada. Sirve para una sola petición: crea otra para la siguiente.
half-label = Tu mitad
copy-half = Copiar
    .aria-label = Copiar tu mitad
half-passphrase = O como archivo, con una frase de paso
half-saved = Guardada, salvo que el navegador te preguntara y dijeras que no.
half-kept = He guardado mi mitad en un lugar seguro
half-replace = No has guardado la mitad anterior. ¿Reemplazarla? Se perdería una respuesta para ella.
send-title = Envía esto al bot
send-lead = Como mensaje directo, desde cualquier cuenta de Nostr. No contiene nada secreto.
message-label = Mensaje
copy-message = Copiar
    .aria-label = Copiar el mensaje
send-then = El bot responde con un texto que empieza por ntweak1. Vuelve con él al paso 2.
work-title = Un bot pide trabajo
work-answer = La respuesta del bot
work-help =
    Pega la respuesta entera. Tu navegador hace el trabajo, y tú envías la línea que crea en un solo mensaje con tu
    petición. Deja abierta esta página; funciona sin conexión.
work-line = La línea que enviar
copy-line = Copiar la línea
work-do = Hacer el trabajo
work-stop = Parar
work-stopped = Detenido.
work-added = Hecho. Envía la línea en un solo mensaje con tu petición. Vale una vez, hoy.
work-none = No contiene una línea «npubbot work …» con un número hasta { $most }. Pega la respuesta entera del bot.
manual-finish = Terminar
half-in-file = Mi mitad está en un archivo
the-file = El archivo
file-passphrase = La frase de paso del archivo
open-file-button = Abrir el archivo
half-opened = Abierto. Ahora pega la respuesta del bot.
answer-label = La respuesta del bot
asked-for = El patrón que pediste (se comprueba si está)
make-key = Formar mi clave

## Texts that are pasted

text-missing =
    { $kind ->
        [nhalf] Falta tu mitad. Pega el texto que empieza por nhalf1.
       *[ntweak] Falta la respuesta del bot. Pega el texto que empieza por ntweak1.
    }
text-damaged =
    { $kind ->
        [nhalf] Esta mitad está dañada
       *[ntweak] Esta respuesta está dañada
    }: falta una parte o hay una errata. Copia otra vez todo el texto { $kind }1….
text-version = Este texto { $kind }1… tiene la versión { $version }, y esta página lee la versión 1. Consigue una copia más nueva de la página.
text-several = Contiene { $count } textos { $kind }1…. Pega uno.
text-other =
    { $other ->
        [nsec] Esto es una clave secreta (nsec). No la pegues donde no haga falta.
        [ncryptsec] Esto es una clave secreta cifrada (ncryptsec).
        [npub] Esto es una clave pública (npub).
        [nprofile] Esto es un perfil (nprofile).
        [nhalf] Esta es tu mitad, que es secreta: no se la envíes nunca a nadie.
        [ntweak] Esta es la respuesta del bot.
       *[none] Este es otro texto.
    } Lo que va aquí empieza por { $kind }1.
half-no-key = Esta mitad contiene un número que no es ninguna clave. Crea una mitad nueva y pide otra vez.
tweak-damaged = Esta respuesta contiene un número imposible. Pregunta otra vez al bot.
tweak-other-half = Esta respuesta es de otra mitad. Pega la mitad con la que pediste.
tweak-cancels = Esta respuesta y esta mitad se anulan, y no queda ninguna clave. Crea una mitad nueva y pide otra vez.
tweak-unfit =
    La clave que resulta es { $npub }, que no encaja con { $patterns }. Comprueba el patrón que pediste. Si es correcto,
    el bot respondió mal: crea una mitad nueva y pide otra vez.

## About the page

about = Acerca de esta página
connects-nothing = Su dirección no nombra ningún bot, así que no se conecta a nada: su política de seguridad de contenido lo prohíbe.
connects-to = Se conecta a { $relays }, y a nada más: su política de seguridad de contenido no permite más.
about-file = Es un solo archivo. Su SHA-256, tal como lo ha leído tu navegador:
about-same = El anuncio firmado del bot nombra la misma página.
about-other = El anuncio firmado del bot nombra otra página: { $hash }. Si no elegiste tú esta, no la uses.
about-hash =
    Una página que miente puede mostrar cualquier número. Antes de confiarle mucho, guarda el archivo, deja que
    sha256sum lo calcule y compáralo con las notas de la versión de npubbot.
about-install = Para tenerla como app, elige «Instalar» o «Añadir a la pantalla de inicio» en el menú del navegador.
