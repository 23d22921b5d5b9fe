# Spanish. No native reader has checked it yet.
# The messages are those of en.ftl; docs/developers/translating.md says what to mind.

language-name = Español
-example = m0ctane

## Words to type. Each is understood, and shown in the messages below.

command-help = ayuda
command-status = estado
command-cancel = cancelar
command-resend = reenviar
command-stop = basta
command-start = iniciar
command-delete = borrar
command-split = split
command-find = buscar
command-explain = explicar
command-language = idioma

## Numbers and spans of time

decimal = ,
number-names = thousands
amount =
    { $unit ->
        [thousand] { $quantity ->
            [1] mil
           *[other] { $number } mil
        }
        [million] { $number } { $quantity ->
            [one] millón
           *[other] millones
        }
        [billion] { $number } mil millones
        [trillion] { $number } { $quantity ->
            [one] billón
           *[other] billones
        }
        [quadrillion] { $number } mil billones
        [quintillion] { $number } { $quantity ->
            [one] trillón
           *[other] trillones
        }
       *[none] { $number }
    }
odds = Encaja más o menos 1 clave de cada { $amount }.
speed =
    { $unit ->
        [none] { $amount } claves por segundo
        [thousand] { $amount } claves por segundo
       *[other] { $amount } de claves por segundo
    }
span =
    { $unit ->
        [seconds] { $count } { $count ->
            [one] segundo
           *[other] segundos
        }
        [minutes] { $count } min
        [hours] { $count } h
        [days] { $count } días
        [years] { $count } años
       *[instant] menos de un segundo
    }
span-hours-minutes = { $hours } h { $minutes } min
span-again = { $count }
takes-exactly = Tarda { $mean }.
takes-little = Tarda { $mean }, rara vez más de { $most }.
takes-about = Tarda aproximadamente { $mean }, rara vez más de { $most }.

## Lists

comma = { ", " }
more = { $count } más
list-and-more = { $list } y { $count } más
any-of = { $list } o { $last }, lo que aparezca primero

## Acceptance

accepted = Pedido { $job }: busco { $patterns }.
no-speed-yet = Todavía no sé a qué velocidad busco. Envía { command-status } más tarde para saber cuánto tardará.
queue = Hay otros antes: faltan aproximadamente { $span } para tu turno.
rests-until = Mis dispositivos descansan hasta las { $time } y luego vuelven a buscar.
rests-now = Mis dispositivos descansan ahora. Volverán a buscar en cuanto puedan.
at-your-point = Se busca con tu propia mitad.
place-in-line = Su puesto en la cola es el { $place }.
tweak-comes = Mi parte llegará a este chat. No es secreta: solo con tu mitad forma la clave.
key-comes = La clave llegará a este chat.
best-likely = Probablemente sea tan rara como 1 clave de cada { $amount }, o más.
best-takes = Llegará en { $span }, más o menos.
expensive =
    Puedes guardar tú la mitad de una clave así. Cómo:
    { command-help } { command-split }
to-stop =
    Para cancelarlo, envía:
    { command-cancel } { $number }

## Help and status

help =
    Busco claves de Nostr cuyo npub empieza con los caracteres que elijas.
    Envía los caracteres que van después de npub1:
    { -example }
    Envía varios, y el primero que aparezca termina el pedido:
    cat dad
    Otros mensajes que entiendo:
    { command-status }: tus pedidos
    { command-cancel }: cancelarlos (o: { command-cancel } 12)
    { command-resend }: la última clave otra vez
    { command-explain }: qué más puedo buscar, como letras parecidas
    surprise: una clave con una palabra al principio, para probar
    { command-find } gm: buscar una palabra que yo entendería de otro modo
    { command-stop }: no te escribo nada más
    { command-delete }: borro tus datos
    lang en: English
    Creo la clave en la máquina de mi operador. Puedes guardar tú la mitad. Cómo:
    { command-help } { command-split }
at-work = Pedidos abiertos de todos: { $jobs }. Pruebo { $speed }.
at-work-unmeasured = Pedidos abiertos de todos: { $jobs }. Todavía no sé a qué velocidad busco.
job-line = Pedido { $job }: { $patterns }, lleva { $waited }.
job-line-expected =
    Pedido { $job }: { $patterns }, { $waited } de { $mean } previstos (probabilidad: { $chance } %).
job-line-best = Pedido { $job }: { $best }, lleva { $waited }; la mejor hasta ahora: 1 clave de cada { $amount }.
and-more-jobs = Y { $count } más.
no-jobs =
    No tienes pedidos abiertos. Para empezar uno, envía un prefijo:
    { -example }
kept-keys =
    Claves que puedo reenviar: { $jobs }. Envía:
    { command-resend }

## Cancelling, and sending again

cancelled =
    { $count ->
        [one] El pedido { $jobs } está cancelado.
       *[other] Los pedidos { $jobs } están cancelados.
    }
no-such-job = No tienes ningún pedido { $job } abierto.
no-open-job = No tienes ningún pedido que cancelar.
start-one =
    Para empezar uno, envía un prefijo:
    { -example }
cancel-one =
    Los tuyos son { $jobs }. Para cancelar uno, envía:
    { command-cancel } { $number }
sent-again =
    La clave del pedido { $job } va de nuevo en camino.
    Es el mismo mensaje. Si tu cliente ya lo tiene, está más arriba.
no-such-key = No guardo ninguna clave de un pedido { $job } tuyo.
no-key = No guardo ninguna clave tuya.
resend-later = Cuando termine un pedido, { command-resend } repite su mensaje.
resend-one =
    Puedo reenviar { $jobs }. Envía:
    { command-resend } { $number }

## What is not understood

find-it = { command-find } { $prefix }
bad-word = { $word }: { $reason }.
send-only-the-prefix =
    No se ha iniciado nada. Envía solo el prefijo:
    { -example }
    o:
    { command-help }
pattern-empty = no hay ningún prefijo; envía de 1 a { $most } de los caracteres { $alphabet }
pattern-too-long = { $characters } caracteres son demasiados; en un npub se pueden elegir como máximo { $most }
pattern-forbidden = «{ $character }» no puede aparecer en un npub; usa los caracteres { $alphabet }
pattern-forbidden-one = «{ $character }» no puede aparecer en un npub; «{ $first }» sí serviría
pattern-forbidden-two = «{ $character }» no puede aparecer en un npub; «{ $first }» o «{ $second }» sí servirían
pattern-impossible = ninguna clave pública empieza así; sus primeros { $count } caracteres serían posibles
pattern-look-alike = { $reason }; { $pattern } admite cualquier forma de escribirlo con letras parecidas
pattern-anything = eso lo cumple cualquier clave; indica al menos un carácter
pattern-class = varios caracteres para un mismo lugar se escriben [s5]
pattern-number = después de { $keyword } va un número de { $least } a { $most }, por ejemplo { $example }
pattern-number-nearest = después de { $keyword } va un número de { $least } a { $most }; lo más cercano es { $nearest }
pattern-hex = después de hex: van de 1 a 64 de las cifras 0 a 9 y a a f, por ejemplo hex:c0de
pattern-hex-one = después de hex: van de 1 a 64 de las cifras 0 a 9 y a a f; { $first } sería posible
pattern-hex-too-long = una clave tiene { $most } cifras hexadecimales; aquí hay { $digits }, quita { $more }
pattern-within = @ sigue a una palabra entre asteriscos e indica dentro de cuántos caracteres, por ejemplo *m0ct*@12
pattern-within-one = @ sigue a una palabra entre asteriscos e indica dentro de cuántos caracteres; { $first } sería posible
pattern-too-many = con una parte en otro lugar se pueden elegir como máximo { $most } caracteres; estos son { $characters }
pattern-ending = el séptimo carácter desde el final siempre es q o s
pattern-ending-one = el séptimo carácter desde el final siempre es q o s; { $first } sería posible
pattern-too-intricate = tiene demasiados lugares abiertos; quita algunos
pattern-best = best va solo y con un tiempo, como best 10m, best zeros 10m o best words 10m; surprise va solo
unsupported =
    Eso no lo puedo leer. No se ha iniciado nada.
    Para el final de una clave, pon un asterisco delante: { "*m0ct" }. Para ver todo lo que entiendo, envía:
    { command-explain }
unsupported-nearest =
    Lo más parecido que puedo hacer:
    { command-find } { $nearest }
unsupported-example =
    Envía un prefijo, por ejemplo:
    { -example }
hello =
    ¡Hola! Envíame los caracteres con los que debe empezar tu npub, por ejemplo:
    { -example }
search-for-it =
    Para buscar npub1{ $prefix }, envía:
    { command-find } { $prefix }
secret-key =
    Eso es una clave secreta. No se la enseñes a nadie y deja de usarla.
    No la he guardado, pero ha pasado por relays y clientes.
    Para obtener una clave nueva, envía solo el prefijo:
    { -example }
seed-answer = Un npub elegido no puede salir de 12 o 24 palabras semilla: su nsec es la copia de seguridad.
nothing =
    No veo ninguna palabra en tu mensaje.
    Envía los caracteres con los que debe empezar tu npub:
    { -example }
    o:
    { command-help }
text-only =
    Solo leo texto, no archivos.
    Envía los caracteres con los que debe empezar tu npub:
    { -example }
no-groups =
    Este mensaje fue a varias personas, y una clave es solo para ti.
    Pídemela en un chat sin nadie más.

## Offers and frequent questions

offer-impossible = «{ $character }» no puede aparecer en un npub. No se ha iniciado nada. Esto se parece; para buscarlo, envía:
offer-accent = Un npub no tiene tildes ni signos en medio. No se ha iniciado nada. Sin ellos:
offer-script = «{ $character }» es una letra de otro alfabeto que se parece a «{ $latin }». No se ha iniciado nada. Con la correcta:
offer-unsure = No se ha iniciado nada, porque no estoy seguro de lo que quieres. Para buscar esto, envía:
offer-uneven = { $easiest } es más de 1000 veces más fácil que el resto, así que siempre saldría ese. No se ha iniciado nada. Solo para el resto, envía:
offer-change =
    La búsqueda { $job } sigue y no se ha iniciado nada más. Para cambiarla, envía uno tras otro:
    { command-cancel } { $number }
show-delete =
    Esto borra aquí tus búsquedas y mensajes, y las claves que podría reenviar. Si es lo que quieres, envía:
    { command-delete }
show-stop =
    Si no quieres más mensajes míos, envía:
    { command-stop }
answer-who =
    Soy un programa que encuentra claves de Nostr cuyo npub empieza como tú quieras: npubbot, de código abierto, a cargo del operador de este npub.
    Solo escribo a quien me ha escrito. Para no recibir más mensajes, envía:
    { command-stop }
answer-price = Es gratis: no pido nada ni acepto pagos.
answer-safety =
    Tu clave se crea en la memoria de la máquina de mi operador y se envía cifrada. Confía en ella tanto como en el operador.
    Mi operador ve tu npub y lo que has pedido. Para que se olvide, envía:
    { command-delete }
    Puedes guardar tú la mitad de la clave. Cómo:
    { command-help } { command-split }
answer-import =
    Copia la línea entera que empieza por nsec1 en tu aplicación, donde pide la clave privada (iniciar sesión, nsec). Luego borra mi mensaje.
    Es una identidad nueva. Una clave que ya tienes no se puede cambiar: sigue valiendo y conserva sus seguidores.
    Para recibir otra vez la última clave, envía:
    { command-resend }
thanks-answer = ¡Con mucho gusto! Para otra clave, envía un prefijo.
chat-answer =
    Yo solo encuentro claves. Envíame los caracteres con los que debe empezar tu npub:
    { -example }
which-next =
    ¿Cuál? Envía el prefijo entero, por ejemplo:
    { -example }
latin-letters =
    Un npub solo tiene letras latinas y cifras. Escríbelo con ellas, por ejemplo:
    { "~hanako" }
foreign-language = No conozco ese idioma. Respondo en { $names }.
other-job =
    La búsqueda { $job } también sigue. Para detenerla, envía:
    { command-cancel } { $number }
page = También hay una página: { $url }

## Patterns

means = { $pattern }: { $meaning }.
meaning-start = empieza con npub1{ $text }
meaning-alike = empieza con npub1 y algo que se lee como «{ $text }»
meaning-middle =
    { $from ->
        [start] después tiene { $text } en cualquier lugar
       *[npub] tiene { $text } en cualquier lugar después de npub1
    }
meaning-within = tiene { $text } dentro de los primeros { $count } caracteres después de npub1
meaning-end = termina en { $text } (suma de control incluida)
spelling = algo que se lee como «{ $text }»
meaning-equal = empieza con npub1 y { $count } caracteres iguales
meaning-equal-anywhere = tiene { $count } caracteres iguales seguidos
meaning-hex-start = su clave pública en hexadecimal empieza con { $text }
meaning-hex-end = su clave pública en hexadecimal termina en { $text }
meaning-zeros = bits a cero al principio de su clave pública: { $count }
meaning-words = empieza con npub1 y una palabra de mi lista de { $count } letras o más
meaning-best =
    la clave más rara de una búsqueda de { $span }, según { $family ->
        [zeros] los bits a cero al principio
        [words] la palabra de mi lista al principio
       *[any] los bits a cero, los caracteres iguales o la palabra al principio
    }
open-place = ? es cualquier carácter
one-of = uno de los caracteres entre corchetes
looks-alike =
    Esto se parece y tarda { $span }:
    { command-find } { $pattern }
needs-start = Eso no lo puedo buscar: muy poco de ello está al principio de una clave.
nothing-started = No se ha iniciado nada.
too-wide =
    Eso permite { $asked } comienzos de clave distintos, y acepto como máximo { $allowed } por pedido.
    No se ha iniciado nada. Envía menos patrones, o con menos lugares abiertos.
too-many-ends =
    De los patrones que dicen poco del comienzo de una clave, acepto como máximo { $allowed } por pedido. El tuyo tiene { $asked }.
    No se ha iniciado nada. Envía menos patrones, o con más caracteres al comienzo.
too-wide-now =
    Ahora busco tantos comienzos distintos que solo puedo aceptar patrones sencillos.
    No se ha iniciado nada. Inténtalo más tarde, o envía un prefijo:
    { -example }
explain-find =
    Para buscarlo, envía:
    { command-find } { $pattern }
kinds =
    Busco claves con estos patrones:
    { -example }: estos caracteres después de npub1
    m0?tane: ? es cualquier carácter
    { "[s5]at0sh" }: uno de los caracteres entre corchetes
    { "~m0ctane" }: cualquier forma de escribirlo con letras parecidas
    =7: siete caracteres iguales
    hex:c0de: la clave pública en hexadecimal
    zeros:24: bits a cero al principio de la clave pública
    words:8: una palabra de mi lista de 8 letras o más
    best 10m: la clave más rara en diez minutos
    surprise: la palabra más larga en diez segundos
    Para saber qué significa uno y cuánto tarda, envía:
    { command-explain } { "~m0ctane" }

## Limits

too-many-prefixes =
    Son { $asked } palabras, y acepto como máximo { $allowed } { $allowed ->
        [one] prefijo
       *[other] prefijos
    } por pedido.
    Envía como máximo { $allowed }, los que más te gusten.
already-searching =
    Ya busco exactamente eso, en el pedido { $job }.
    Para ver cómo va, envía:
    { command-status }
    Para cancelarlo, envía:
    { command-cancel } { $number }
result-not-taken =
    Una clave que encontré para ti sigue aquí: ninguno de tus relays la ha aceptado. No se ha iniciado nada.
    Si tus relays aceptan ahora mis mensajes, envía:
    { command-resend }
too-many-not-taken = Guardo tantas claves que nadie recoge que no puedo iniciar nada para gente nueva. Inténtalo más tarde.
too-many-open =
    Tienes { $count } { $count ->
        [one] pedido abierto
       *[other] pedidos abiertos
    } ({ $jobs }); el límite es { $allowed }.
    Espera a que termine uno o cancela uno:
    { command-cancel } { $number }
too-many-today =
    Has empezado { $allowed } { $allowed ->
        [one] pedido
       *[other] pedidos
    } en las últimas 24 horas, y ese es el límite.
    Podrás empezar el siguiente dentro de { $span }.
too-hard = Eso tardaría aproximadamente { $span }. No acepto nada que tarde más de { $limit }.
too-hard-all = Ahora no puedo aceptar ninguna petición. Inténtalo más tarde.
too-hard-up-to =
    Ahora acepto hasta { $characters } { $characters ->
        [one] carácter
       *[other] caracteres
    }.
best-too-long =
    Busco la clave más rara durante { $limit } como máximo. No se ha iniciado nada. Envía:
    { command-find } { $best }
not-measured =
    Ahora no sé a qué velocidad busco, así que no puedo decir cuánto tardará.
    Ahora se admiten hasta { $characters } { $characters ->
        [one] carácter
       *[other] caracteres
    }. Para más, inténtalo dentro de un minuto.
needs-sealed =
    Tu cliente envió un tipo antiguo de mensaje (NIP-04). Solo atiendo mensajes NIP-17.
    Escríbeme desde un cliente que los envíe, como Amethyst, 0xchat, Coracle o Nostur, y haz que publique tus relays de mensajes.
needs-sealed-page = O usa mi página, sin cliente: { $page }
friends-only = Este bot solo busca para los amigos de su operador.
restored =
    Me restauraron de una copia de seguridad después de este mensaje, y quizá ya lo respondí.
    Si aún lo quieres, envíalo otra vez. Para una clave dividida, crea antes una mitad nueva.
price =
    Ahora mucha gente me pide claves, así que esto cuesta un poco de trabajo de tu dispositivo: { $bits } bits de prueba de trabajo, aproximadamente { $span } en un teléfono. No se ha iniciado nada.
price-page = Mi página hace el trabajo por ti: { $page }
price-command =
    En un ordenador con npubbot lo hace esta orden:
    { $command }
    Después envía tu petición otra vez, junto con la línea que muestra. O inténtalo más tarde.
work-alone =
    Esa es la prueba de trabajo. Envíala en un solo mensaje con tu petición, por ejemplo:
    { -example }
    work …
paused =
    Son muchos mensajes. Vuelvo a responder a las { $time }.
    Tus pedidos abiertos continúan.

## Split keys

split-help =
    Guarda tú la mitad de la clave: así mi respuesta no le sirve a nadie más que a ti.
    En tu máquina, crea una mitad secreta (o usa la página web que viene con npubbot):
    npubbot split new { -example }
    Envíame la línea que muestra:
    split HALF { -example }
    Respondo con mi parte, que no es secreta. Tu mitad y mi parte forman la clave:
    npubbot combine
bad-point = No puedo usar esa mitad pública: { $reason }.
no-point = No veo ninguna mitad pública ahí.
send-a-point =
    No se ha iniciado nada. Envía:
    split HALF { -example }
    Cómo crear una:
    { command-help } { command-split }
point-not-a-point = una mitad pública son 66 cifras hexadecimales que empiezan por 02 o 03, o un npub
point-not-on-curve = esas cifras no son una mitad pública, así que falta algo o hay una errata; cópialo entero
point-damaged = la suma de control del npub no coincide, así que falta algo o hay una errata; cópialo entero
point-alone =
    Veo tu mitad, pero ningún prefijo. No se ha iniciado nada.
    Envía los dos en un mensaje:
    split HALF { -example }
    Cómo funciona:
    { command-help } { command-split }
half-used =
    { $use ->
        [open] Ya se está buscando con esta mitad, o con una emparentada.
       *[spent] Esta mitad, o una emparentada, ya sirvió para una clave.
    }
    Dos claves de una misma mitad se delatan: quien tiene una encuentra la otra.
    Crea una mitad nueva para cada clave:
    npubbot split new

## Stop, start, delete, language

stopped =
    No te escribo nada más.
    Para volver a saber de mí, envía:
    { command-start }
stopped-cancelled =
    { $open ->
        [one] Tu pedido abierto está cancelado.
       *[other] Tus { $open } pedidos abiertos están cancelados.
    } No te escribo nada más.
    Para volver a saber de mí, envía:
    { command-start }
started =
    Aquí estoy de nuevo. Envía un prefijo:
    { -example }
    o:
    { command-help }
forgotten =
    Hecho: tus pedidos{ $open ->
        [0] {""}
       *[other] {" "}(los abiertos están cancelados)
    } y mensajes se han borrado de mi registro, con las claves que podía reenviar.
    Los números de tus mensajes desaparecen en 9 días; hasta entonces evitan que vuelva a responder a copias antiguas.
    Las horas de los pedidos que empezaste en las últimas 24 horas se guardan ese tiempo: cuentan para el límite diario.
language-set =
    Ahora respondo en español.
    Envía un prefijo:
    { -example }
    o:
    { command-help }
languages = Respondo en estos idiomas. Envía uno de:
choose-language = lang { $code } ({ $name })

## Results and notices

found-prefix = Este npub empieza con npub1{ $pattern }
found-met = Este npub tiene { $met }, que cumple { $pattern }
found-word = Este npub empieza con npub1{ $met }, que se lee «{ $word }»
found-fits = Este npub cumple { $pattern }
found-after = El pedido { $job } terminó en { $waited }. { $fits }:
found-best = El pedido { $job } terminó: esta es la clave más rara que vi. { $fits }, como 1 clave de cada { $amount }:
key-found =
    { $heading }
    { $npub }
    Mi próximo mensaje es su clave secreta y nada más: cópialo entero.
    Quien la tiene es esta identidad. Guárdala bien y no se la enseñes a nadie.
    Se creó en la máquina de mi operador: confía en ella tanto como en el operador.
    Para recibir los dos mensajes otra vez, envía:
    { command-resend }
tweak-found =
    { $heading }
    { $npub }
    Mi próximo mensaje es mi parte y nada más: cópialo entero. No es secreta.
    Con tu mitad forma la clave:
    npubbot combine
    Tu mitad ya ha servido. Crea una nueva para la próxima clave.
tips = Si te gusta, las propinas para mi operador van a { $address }
apology =
    Algo falló por mi parte con este mensaje. No se ha iniciado nada.
    Consta en el registro de mi operador. Dilo con otras palabras o envía:
    { command-help }
late =
    El pedido { $job } tarda más de lo que dije: lleva { $waited }.
    Es mala suerte o un día lento. Sigo como máximo { $left } más; no tienes que hacer nada.
    Para cancelarlo, envía:
    { command-cancel } { $number }
lost =
    El pedido { $job } se abandona: me restauraron de una copia de seguridad y quizá tu mitad ya se usó. Dos claves de una misma mitad se delatan.
    Crea una mitad nueva y envíame la línea que muestra: npubbot split new
given-up =
    El pedido { $job } se abandona: en { $span } no encontré { $patterns ->
        [one] su prefijo
       *[other] ninguno de sus { $patterns } prefijos
    }.
    Envía uno más corto, o el mismo otra vez para volver a intentarlo.
