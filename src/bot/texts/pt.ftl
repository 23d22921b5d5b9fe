# Portuguese, as in Brazil. No native reader has checked it yet.
# The messages are those of en.ftl; docs/developers/translating.md says what to mind.

language-name = Português
-example = m0ctane

## Words to type. Each is understood, and shown in the messages below.

command-help = ajuda
command-status = estado
command-cancel = cancelar
command-resend = reenviar
command-stop = silêncio
command-start = iniciar
command-delete = excluir
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
            [one] milhão
           *[other] milhões
        }
        [billion] { $number } { $quantity ->
            [one] bilhão
           *[other] bilhões
        }
        [trillion] { $number } { $quantity ->
            [one] trilhão
           *[other] trilhões
        }
        [quadrillion] { $number } { $quantity ->
            [one] quatrilhão
           *[other] quatrilhões
        }
        [quintillion] { $number } { $quantity ->
            [one] quintilhão
           *[other] quintilhões
        }
       *[none] { $number }
    }
odds = Cerca de 1 chave em { $amount } serve.
speed =
    { $unit ->
        [none] { $amount } chaves por segundo
        [thousand] { $amount } chaves por segundo
       *[other] { $amount } de chaves por segundo
    }
span =
    { $unit ->
        [seconds] { $count } { $count ->
            [one] segundo
           *[other] segundos
        }
        [minutes] { $count } min
        [hours] { $count } h
        [days] { $count } dias
        [years] { $count } anos
       *[instant] menos de um segundo
    }
span-hours-minutes = { $hours } h { $minutes } min
span-again = { $count }
takes-exactly = Isso leva { $mean }.
takes-little = Isso leva { $mean }, raramente mais de { $most }.
takes-about = Isso leva cerca de { $mean }, raramente mais de { $most }.

## Lists

comma = { ", " }
more = mais { $count }
list-and-more = { $list } e mais { $count }
any-of = { $list } ou { $last }, o que aparecer primeiro

## Acceptance

accepted = Pedido { $job }: procuro { $patterns }.
no-speed-yet = Ainda não sei a minha velocidade. Envie { command-status } mais tarde para saber o tempo previsto.
queue = Há outros antes: faltam cerca de { $span } para a sua vez.
rests-until = Meus dispositivos descansam até { $time } e depois voltam a buscar.
rests-now = Meus dispositivos descansam agora. Voltam a buscar assim que puderem.
at-your-point = A busca usa a sua própria metade.
place-in-line = O lugar dele na fila é { $place }.
tweak-comes = A minha parte chega neste chat. Não é secreta: só com a sua metade ela forma a chave.
key-comes = A chave chega neste chat.
best-likely = Provavelmente será tão rara quanto 1 chave em { $amount }, ou mais.
best-takes = Ela chega em cerca de { $span }.
expensive =
    Você pode guardar metade de uma chave assim. Como:
    { command-help } { command-split }
to-stop =
    Para cancelar, envie:
    { command-cancel } { $number }

## Help and status

help =
    Procuro chaves Nostr cujo npub começa com os caracteres que você escolher.
    Envie os caracteres que vêm depois de npub1:
    { -example }
    Envie vários, e o primeiro que for encontrado encerra o pedido:
    cat dad
    Outras mensagens que entendo:
    { command-status }: os seus pedidos
    { command-cancel }: cancelar os pedidos (ou: { command-cancel } 12)
    { command-resend }: a última chave de novo
    { command-explain }: o que mais posso procurar, como letras parecidas
    surprise: uma chave com uma palavra no começo, para experimentar
    { command-find } gm: procurar uma palavra que eu entenderia de outro jeito
    { command-stop }: não escrevo mais nada para você
    { command-delete }: apago os seus dados
    lang en: English
    Crio a chave na máquina do meu operador. Você pode guardar metade dela. Como:
    { command-help } { command-split }
at-work = Pedidos abertos de todos: { $jobs }. Testo { $speed }.
at-work-unmeasured = Pedidos abertos de todos: { $jobs }. Ainda não sei a minha velocidade.
job-line = Pedido { $job }: { $patterns }, esperando há { $waited }.
job-line-expected =
    Pedido { $job }: { $patterns }, { $waited } de { $mean } previstos (chance: { $chance } %).
job-line-best = Pedido { $job }: { $best }, esperando há { $waited }; a melhor até agora: 1 chave em { $amount }.
and-more-jobs = E mais { $count }.
no-jobs =
    Você não tem pedidos abertos. Para começar um, envie um prefixo:
    { -example }
kept-keys =
    Chaves que posso reenviar: { $jobs }. Envie:
    { command-resend }

## Cancelling, and sending again

cancelled =
    { $count ->
        [one] O pedido { $jobs } foi cancelado.
       *[other] Os pedidos { $jobs } foram cancelados.
    }
no-such-job = Você não tem nenhum pedido { $job } aberto.
no-open-job = Você não tem nenhum pedido para cancelar.
start-one =
    Para começar um, envie um prefixo:
    { -example }
cancel-one =
    Os seus são { $jobs }. Para cancelar um, envie:
    { command-cancel } { $number }
sent-again =
    A chave do pedido { $job } está a caminho de novo.
    É a mesma mensagem. Se o seu cliente já a tem, ela está mais acima.
no-such-key = Não guardo nenhuma chave de um pedido { $job } seu.
no-key = Não guardo nenhuma chave sua.
resend-later = Quando um pedido termina, { command-resend } repete a mensagem dele.
resend-one =
    Posso reenviar { $jobs }. Envie:
    { command-resend } { $number }

## What is not understood

find-it = { command-find } { $prefix }
bad-word = { $word }: { $reason }.
send-only-the-prefix =
    Nada foi iniciado. Envie só o prefixo:
    { -example }
    ou:
    { command-help }
pattern-empty = não há prefixo aí; envie de 1 a { $most } dos caracteres { $alphabet }
pattern-too-long = { $characters } caracteres são demais; em um npub dá para escolher no máximo { $most }
pattern-forbidden = “{ $character }” não pode aparecer em um npub; use os caracteres { $alphabet }
pattern-forbidden-one = “{ $character }” não pode aparecer em um npub; “{ $first }” serviria
pattern-forbidden-two = “{ $character }” não pode aparecer em um npub; “{ $first }” ou “{ $second }” serviria
pattern-impossible = nenhuma chave pública começa assim; os primeiros { $count } caracteres seriam possíveis
pattern-look-alike = { $reason }; { $pattern } aceita qualquer grafia com letras parecidas
pattern-anything = qualquer chave serve para isso; escolha pelo menos um caractere
pattern-class = vários caracteres para um mesmo lugar se escrevem [s5]
pattern-number = depois de { $keyword } vem um número de { $least } a { $most }, por exemplo { $example }
pattern-number-nearest = depois de { $keyword } vem um número de { $least } a { $most }; o mais próximo é { $nearest }
pattern-hex = depois de hex: vêm de 1 a 64 dos dígitos 0 a 9 e a até f, por exemplo hex:c0de
pattern-hex-one = depois de hex: vêm de 1 a 64 dos dígitos 0 a 9 e a até f; { $first } seria possível
pattern-hex-too-long = uma chave tem { $most } dígitos hexadecimais; aqui há { $digits }, tire { $more }
pattern-within = @ vem depois de uma palavra entre asteriscos e diz dentro de quantos caracteres, por exemplo *m0ct*@12
pattern-within-one = @ vem depois de uma palavra entre asteriscos e diz dentro de quantos caracteres; { $first } seria possível
pattern-too-many = com uma parte em outro lugar dá para escolher no máximo { $most } caracteres; esses são { $characters }
pattern-ending = o sétimo caractere a partir do fim é sempre q ou s
pattern-ending-one = o sétimo caractere a partir do fim é sempre q ou s; { $first } seria possível
pattern-too-intricate = há lugares abertos demais; tire alguns
pattern-best = best vai sozinho e com um tempo, como best 10m, best zeros 10m ou best words 10m; surprise vai sozinho
unsupported =
    Isso não consigo ler. Nada foi iniciado.
    Para o fim de uma chave, ponha um asterisco antes: { "*m0ct" }. Para ver tudo o que entendo, envie:
    { command-explain }
unsupported-nearest =
    O mais próximo que posso fazer:
    { command-find } { $nearest }
unsupported-example =
    Envie um prefixo, por exemplo:
    { -example }
hello =
    Olá! Envie os caracteres com que o seu npub deve começar, por exemplo:
    { -example }
search-for-it =
    Para procurar npub1{ $prefix }, envie:
    { command-find } { $prefix }
secret-key =
    Isso é uma chave secreta. Não mostre a ninguém e pare de usá-la.
    Não a guardei, mas ela passou por relays e clientes.
    Para ter uma chave nova, envie só o prefixo:
    { -example }
seed-answer = Um npub escolhido não pode vir de 12 ou 24 palavras-semente: o nsec dele é a cópia de segurança.
nothing =
    Não vejo nenhuma palavra na sua mensagem.
    Envie os caracteres com que o seu npub deve começar:
    { -example }
    ou:
    { command-help }
text-only =
    Só leio texto, não arquivos.
    Envie os caracteres com que o seu npub deve começar:
    { -example }
no-groups =
    Esta mensagem foi para várias pessoas, e uma chave é só para você.
    Peça em um chat sem mais ninguém.

## Offers and frequent questions

offer-impossible = “{ $character }” não existe em um npub. Nada foi iniciado. Isto é parecido; para procurar, envie:
offer-accent = Um npub não tem acentos nem sinais no meio. Nada foi iniciado. Sem eles:
offer-script = “{ $character }” é uma letra de outro alfabeto, parecida com “{ $latin }”. Nada foi iniciado. Com a certa:
offer-unsure = Nada foi iniciado, porque não tenho certeza do que você quer. Para procurar isto, envie:
offer-uneven = { $easiest } é mais de 1000 vezes mais fácil que o resto, então sempre viria esse. Nada foi iniciado. Só para o resto, envie:
offer-change =
    A busca { $job } continua, e nada mais foi iniciado. Para trocar, envie um depois do outro:
    { command-cancel } { $number }
show-delete =
    Isso apaga aqui suas buscas e mensagens, e as chaves que eu poderia reenviar. Se é o que você quer, envie:
    { command-delete }
show-stop =
    Se você não quer mais mensagens minhas, envie:
    { command-stop }
answer-who =
    Sou um programa que encontra chaves do Nostr cujo npub começa como você quiser: npubbot, de código aberto, mantido pelo operador deste npub.
    Só escrevo para quem me escreveu. Para não receber mais mensagens, envie:
    { command-stop }
answer-price = É de graça: não peço nada e não aceito pagamento.
answer-safety =
    Sua chave é criada na memória da máquina do meu operador e enviada criptografada. Confie nela tanto quanto confia no operador.
    Meu operador vê seu npub e o que você pediu. Para que isso seja esquecido, envie:
    { command-delete }
    Você pode guardar metade da chave. Como:
    { command-help } { command-split }
answer-import =
    Copie a linha inteira que começa com nsec1 no seu aplicativo, onde ele pede a chave privada (entrar, nsec). Depois apague minha mensagem.
    É uma identidade nova. Uma chave que você já tem não pode ser mudada: continua valendo e mantém seus seguidores.
    Para receber de novo a última chave, envie:
    { command-resend }
thanks-answer = De nada! Para outra chave, envie um prefixo.
chat-answer =
    Eu só encontro chaves. Envie os caracteres com que seu npub deve começar:
    { -example }
which-next =
    Qual? Envie o prefixo inteiro, por exemplo:
    { -example }
latin-letters =
    Um npub só tem letras latinas e algarismos. Escreva com eles, por exemplo:
    { "~hanako" }
foreign-language = Não conheço esse idioma. Respondo em { $names }.
other-job =
    A busca { $job } também continua. Para parar essa, envie:
    { command-cancel } { $number }
page = Há também uma página: { $url }

## Patterns

means = { $pattern }: { $meaning }.
meaning-start = começa com npub1{ $text }
meaning-alike = começa com npub1 e algo que se lê como “{ $text }”
meaning-middle =
    { $from ->
        [start] depois tem { $text } em qualquer lugar
       *[npub] tem { $text } em qualquer lugar depois de npub1
    }
meaning-within = tem { $text } dentro dos primeiros { $count } caracteres depois de npub1
meaning-end = termina em { $text } (soma de verificação incluída)
spelling = algo que se lê como “{ $text }”
meaning-equal = começa com npub1 e { $count } caracteres iguais
meaning-equal-anywhere = tem { $count } caracteres iguais seguidos
meaning-hex-start = a chave pública em hexadecimal começa com { $text }
meaning-hex-end = a chave pública em hexadecimal termina em { $text }
meaning-zeros = bits zero no começo da chave pública: { $count }
meaning-words = começa com npub1 e uma palavra da minha lista com { $count } letras ou mais
meaning-best =
    a chave mais rara de uma busca de { $span }, segundo { $family ->
        [zeros] os bits zero no começo
        [words] a palavra da minha lista no começo
       *[any] os bits zero, os caracteres iguais ou a palavra no começo
    }
open-place = ? é qualquer caractere
one-of = um dos caracteres entre colchetes
looks-alike =
    Isto se parece e leva { $span }:
    { command-find } { $pattern }
needs-start = Isso não posso procurar: muito pouco está no começo de uma chave.
nothing-started = Nada foi iniciado.
too-wide =
    Isso permite { $asked } começos de chave diferentes, e aceito no máximo { $allowed } por pedido.
    Nada foi iniciado. Envie menos padrões, ou com menos lugares abertos.
too-many-ends =
    Dos padrões que dizem pouco do começo de uma chave, aceito no máximo { $allowed } por pedido. O seu tem { $asked }.
    Nada foi iniciado. Envie menos padrões, ou com mais caracteres no começo.
too-wide-now =
    Agora procuro tantos começos diferentes que só posso aceitar padrões simples.
    Nada foi iniciado. Tente mais tarde, ou envie um prefixo:
    { -example }
explain-find =
    Para procurar, envie:
    { command-find } { $pattern }
kinds =
    Procuro chaves com estes padrões:
    { -example }: estes caracteres depois de npub1
    m0?tane: ? é qualquer caractere
    { "[s5]at0sh" }: um dos caracteres entre colchetes
    { "~m0ctane" }: qualquer grafia com letras parecidas
    =7: sete caracteres iguais
    hex:c0de: a chave pública em hexadecimal
    zeros:24: bits zero no começo da chave pública
    words:8: uma palavra da minha lista com 8 letras ou mais
    best 10m: a chave mais rara em dez minutos
    surprise: a palavra mais longa em dez segundos
    Para saber o que um significa e quanto tempo leva, envie:
    { command-explain } { "~m0ctane" }

## Limits

too-many-prefixes =
    São { $asked } palavras, e aceito no máximo { $allowed } { $allowed ->
        [one] prefixo
       *[other] prefixos
    } por pedido.
    Envie no máximo { $allowed }, os de que mais gosta.
already-searching =
    Já procuro exatamente isso, no pedido { $job }.
    Para ver como está, envie:
    { command-status }
    Para cancelar, envie:
    { command-cancel } { $number }
result-not-taken =
    Uma chave que encontrei para você ainda está aqui: nenhum dos seus relays a aceitou. Nada foi iniciado.
    Se os seus relays aceitam as minhas mensagens agora, envie:
    { command-resend }
too-many-not-taken = Guardo tantas chaves que ninguém busca que não posso iniciar nada para gente nova. Tente mais tarde.
too-many-open =
    Você tem { $count } { $count ->
        [one] pedido aberto
       *[other] pedidos abertos
    } ({ $jobs }); o limite é { $allowed }.
    Espere um terminar ou cancele um:
    { command-cancel } { $number }
too-many-today =
    Você começou { $allowed } { $allowed ->
        [one] pedido
       *[other] pedidos
    } nas últimas 24 horas, e esse é o limite.
    O próximo será possível daqui a { $span }.
too-hard = Isso levaria cerca de { $span }. Não aceito nada que leve mais de { $limit }.
too-hard-all = Agora não posso aceitar nenhum pedido. Tente mais tarde.
too-hard-up-to =
    Agora aceito até { $characters } { $characters ->
        [one] caractere
       *[other] caracteres
    }.
best-too-long =
    Procuro a chave mais rara por no máximo { $limit }. Nada foi iniciado. Envie:
    { command-find } { $best }
not-measured =
    Agora não sei a minha velocidade, então não posso dizer quanto tempo leva.
    Agora aceito até { $characters } { $characters ->
        [one] caractere
       *[other] caracteres
    }. Para mais, tente daqui a um minuto.
needs-sealed =
    O seu cliente enviou um tipo antigo de mensagem (NIP-04). Só atendo mensagens NIP-17.
    Escreva de um cliente que as envie, como Amethyst, 0xchat, Coracle ou Nostur, e deixe que ele publique os seus relays de mensagens.
needs-sealed-page = Ou use a minha página, sem cliente: { $page }
friends-only = Este bot só procura para amigos do seu operador.
restored =
    Fui restaurado de uma cópia de segurança depois desta mensagem, e talvez já a tenha respondido.
    Se ainda quiser, envie mais uma vez. Para uma chave dividida, crie antes uma metade nova.
price =
    Muita gente me pede chaves agora, então isto custa um pouco de trabalho do seu aparelho: { $bits } bits de prova de trabalho, cerca de { $span } em um telefone. Nada foi iniciado.
price-page = A minha página faz o trabalho por você: { $page }
price-command =
    Em um computador com npubbot, este comando faz isso:
    { $command }
    Depois envie o seu pedido de novo, junto com a linha que ele mostra. Ou tente mais tarde.
work-alone =
    Essa é a prova de trabalho. Envie-a em uma só mensagem com o seu pedido, por exemplo:
    { -example }
    work …
paused =
    São muitas mensagens. Volto a responder às { $time }.
    Os seus pedidos abertos continuam.

## Split keys

split-help =
    Guarde metade da chave: assim a minha resposta não serve a ninguém além de você.
    Na sua máquina, crie uma metade secreta (ou use a página web que vem com o npubbot):
    npubbot split new { -example }
    Envie a linha que ele mostra:
    split HALF { -example }
    Respondo com a minha parte, que não é secreta. A sua metade e a minha parte formam a chave:
    npubbot combine
bad-point = Não posso usar essa metade pública: { $reason }.
no-point = Não vejo nenhuma metade pública aí.
send-a-point =
    Nada foi iniciado. Envie:
    split HALF { -example }
    Como criar uma:
    { command-help } { command-split }
point-not-a-point = uma metade pública são 66 dígitos hexadecimais que começam com 02 ou 03, ou um npub
point-not-on-curve = esses dígitos não são uma metade pública, então falta algo ou há um erro; copie tudo
point-damaged = a soma de verificação do npub não confere, então falta algo ou há um erro; copie tudo
point-alone =
    Vejo a sua metade, mas nenhum prefixo. Nada foi iniciado.
    Envie os dois em uma mensagem:
    split HALF { -example }
    Como funciona:
    { command-help } { command-split }
half-used =
    { $use ->
        [open] Esta metade, ou uma aparentada, já está em uso numa busca.
       *[spent] Esta metade, ou uma aparentada, já serviu para uma chave.
    }
    Duas chaves da mesma metade se entregam: quem tem uma encontra a outra.
    Crie uma metade nova para cada chave:
    npubbot split new

## Stop, start, delete, language

stopped =
    Não escrevo mais nada para você.
    Para voltar a receber mensagens minhas, envie:
    { command-start }
stopped-cancelled =
    { $open ->
        [one] O seu pedido aberto foi cancelado.
       *[other] Os seus { $open } pedidos abertos foram cancelados.
    } Não escrevo mais nada para você.
    Para voltar a receber mensagens minhas, envie:
    { command-start }
started =
    Estou de volta. Envie um prefixo:
    { -example }
    ou:
    { command-help }
forgotten =
    Pronto: os seus pedidos{ $open ->
        [0] {""}
       *[other] {" "}(os abertos foram cancelados)
    } e mensagens saíram do meu registro, com as chaves que eu podia reenviar.
    Os números das suas mensagens somem em até 9 dias; até lá evitam que cópias antigas sejam respondidas de novo.
    Os horários dos pedidos das últimas 24 horas ficam por esse tempo: contam para o limite diário.
language-set =
    Agora respondo em português.
    Envie um prefixo:
    { -example }
    ou:
    { command-help }
languages = Respondo nestes idiomas. Envie um de:
choose-language = lang { $code } ({ $name })

## Results and notices

found-prefix = Este npub começa com npub1{ $pattern }
found-met = Este npub tem { $met }, que corresponde a { $pattern }
found-word = Este npub começa com npub1{ $met }, que se lê “{ $word }”
found-fits = Este npub corresponde a { $pattern }
found-after = O pedido { $job } terminou em { $waited }. { $fits }:
found-best = O pedido { $job } terminou: esta é a chave mais rara que vi. { $fits }, como 1 chave em { $amount }:
key-found =
    { $heading }
    { $npub }
    A minha próxima mensagem é a chave secreta dele e nada mais: copie-a inteira.
    Quem a tem é esta identidade. Guarde bem e não mostre a ninguém.
    Ela foi criada na máquina do meu operador: confie nela tanto quanto confia no operador.
    Para receber as duas mensagens de novo, envie:
    { command-resend }
tweak-found =
    { $heading }
    { $npub }
    A minha próxima mensagem é a minha parte e nada mais: copie-a inteira. Não é secreta.
    Com a sua metade ela forma a chave:
    npubbot combine
    A sua metade já serviu. Crie uma nova para a próxima chave.
tips = Se gostou, as gorjetas para o meu operador vão para { $address }
apology =
    Algo deu errado do meu lado com esta mensagem. Nada foi iniciado.
    Está no registro do meu operador. Diga com outras palavras ou envie:
    { command-help }
late =
    O pedido { $job } demora mais do que eu disse: { $waited } até agora.
    É azar ou um dia lento. Continuo por no máximo { $left }; você não precisa fazer nada.
    Para cancelar, envie:
    { command-cancel } { $number }
lost =
    O pedido { $job } foi abandonado: fui restaurado de uma cópia de segurança, e a sua metade talvez já tenha sido usada. Duas chaves da mesma metade se entregam.
    Crie uma metade nova e envie a linha que aparece: npubbot split new
given-up =
    O pedido { $job } foi abandonado: em { $span } não encontrei { $patterns ->
        [one] o prefixo dele
       *[other] nenhum dos { $patterns } prefixos dele
    }.
    Envie um mais curto, ou o mesmo de novo para tentar outra vez.
