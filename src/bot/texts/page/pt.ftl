# The page in Portuguese (Brazil). No native reader has checked it yet.
# The messages are those of en.ftl; docs/developers/translating.md says what to mind.

text-direction = ltr
sentence = { $text }.

## The first screen

page-title = npubbot: escolha o seu npub
page-title-found = npubbot: a sua chave está aqui
heading = Uma chave Nostr com as suas letras
lead-nostr =
    Nostr é uma rede de publicações e mensagens que não pertence a ninguém. O seu npub é o seu nome público nela, e o
    seu nsec é a chave secreta dele.
lead-half = Metade do segredo é criada neste navegador e fica aqui. Assim ninguém além de você pode ter a chave.
language = Idioma
ask-title = Com o que o seu npub deve começar?
characters-help = Letras minúsculas e algarismos. Os caracteres 1, b, i e o não existem em um npub.
more-patterns = Mais padrões
several-help = Escreva vários, separados por espaços, para obter o que for encontrado primeiro.
find-key = Encontrar a minha chave
searching-bot = Procurando o bot…
bot-found = Você pede a { $bot }, { $npub }…, por { $relays }.
bot-asleep = { $bot } está off-line agora. Você pode pedir: ele responde quando voltar. Guarde o seu pedido até lá.
relays-dead = Nenhum dos relays deste link pode ser alcançado. Verifique a sua conexão e tente de novo, ou consiga um novo link.
bot-unknown = O bot ainda não foi encontrado. Espere um momento ou tente de novo.
the-bot = o bot
try-again = Tentar de novo
open-file = Abrir um pedido salvo como arquivo
use = Usar { $pattern }
spellings = Outras grafias para tocar

rarity-later = O bot dirá o quanto isso é raro e quanto tempo leva.
time-later = O bot dirá quanto tempo isso leva.
best-time = O bot procura por { $span } e diz o quanto a chave é rara.
too-long = Isso levaria cerca de { $span }, e este bot procura por { $limit } no máximo. Encurte.
too-long-fits = Isso levaria cerca de { $span }, e este bot procura por { $limit } no máximo. Isto serve:
no-pattern = Escreva os caracteres que devem vir depois de npub1, por exemplo m0ctane

## Links

link-nsec = Esta é uma chave secreta (nsec). Não mostre a ninguém e não cole em lugar nenhum. Para pedir a um bot, cole o npub dele.
link-none = Nenhum bot é indicado aqui. Cole o npub1… do bot ou o link dele.
link-damaged = O npub do bot está danificado: falta uma parte ou há um erro de digitação. Copie o link inteiro de novo.
address-nsec = Havia uma chave secreta (nsec) neste endereço, e outros podem tê-la visto. Pare de usar essa chave e crie uma nova.
no-bot-title = Deixe esta página pedir por você
bot-label = O npub ou o link do bot
bot-help = Então a página se conecta aos relays do bot, e a mais nada.
open = Abrir

## Waiting

request-title = O seu pedido: { $patterns }
step-wait = Esperando o bot
step-search = Procurando
step-found = Encontrada
step-done = : feito
step-now = : agora
chance-key = Chance de a chave já ter sido encontrada
chance-work = Chance de o trabalho já estar feito
part-over = Parte do tempo que já passou
connecting = Conectando…
relays-gone = Nenhum relay pode ser alcançado agora. A página continua tentando; verifique a sua conexão.
sending = Enviando o seu pedido…
waiting = Esperando a resposta do bot…
no-answer = O bot ainda não respondeu. Ele pode estar ocupado ou off-line. Guarde o seu pedido abaixo e volte mais tarde.
searching = O bot está procurando (trabalho { $job }).
refused = Nada foi iniciado. Leia o que o bot diz e peça outra coisa.
stopping = O bot recebe o aviso de parar…
stopped = Parada. Você pode pedir outra coisa.
working = Muita gente pede agora, então o bot quer um pouco de trabalho antes. O seu navegador faz isso.
worked = O trabalho está feito. Esperando a resposta do bot…
work-percent = { $percent } de 100 feitos, mais cerca de { $span }.
work-percent-only = { $percent } de 100 feitos.
so-far = { $elapsed } até agora.
so-far-of = { $elapsed } até agora de { $time }.
so-far-expected = { $elapsed } até agora, cerca de { $time } esperados.
so-far-late = { $elapsed } até agora, cerca de { $time } esperados. Está demorando, e pode chegar a qualquer momento.
bot-says = O que o bot diz
stop-search = Parar a procura
ask-again = Pedir outra coisa

## Keeping a request

keep-title = Quer fechar esta página enquanto isso?
keep-why = A sua metade do segredo está só nesta aba. Guarde-a com uma frase secreta, e você pode voltar para buscar a chave.
keep-passphrase = Uma frase secreta que você vai lembrar
keep-here = Guardar neste navegador
keep-file = Salvar como arquivo
is-kept = Este pedido está guardado. Você pode fechar a página e voltar.
kept-here = Guardado neste navegador. Você pode fechar a página e voltar com a sua frase secreta.
kept-file = Salvo, a não ser que o navegador tenha perguntado e você tenha dito não. Você pode fechar a página e voltar com a sua frase secreta.
kept-title = Continue de onde parou
kept-requests = Os seus pedidos salvos
kept-asked = pedido em { $when }
saved-file = Um arquivo salvo
its-passphrase = A frase secreta dele
go-on = Continuar
delete-kept = Apagar este pedido
delete-sure = Apagar este pedido? Sem ele, a resposta do bot não vale nada.
no-passphrase = Ainda não há frase secreta. Escreva uma.
wrong-passphrase = Frase secreta errada. Tente de novo.
file-damaged = Este arquivo está danificado ou não é desta página. Escolha outro.
file-large = Este arquivo é grande demais para ser desta página. Escolha outro.
file-none = Nenhum arquivo foi escolhido ainda.
kept-many = Este navegador já guarda { $count } pedidos. Salve este como arquivo.
keeps-nothing = Este navegador não guarda nada para esta página. Salve um arquivo.
no-request = Isto não é um pedido salvo, ou está danificado.
slow = Trabalhando: é lento de propósito.
no-memory = Não funcionou, talvez por falta de memória. Feche outras abas e tente de novo.
went-wrong = Algo deu errado. Recarregue a página.

## The key

done-title = A sua chave está aqui
npub-label = Público: o seu npub
nsec-label = Secreto: o seu nsec
nsec-warning = Salve-o agora no seu gerenciador de senhas. Quem o tem é você, e ninguém pode devolvê-lo se for perdido.
save-nsec = Salvar no gerenciador de senhas
copy = Copiar
copy-npub = Copiar
    .aria-label = Copiar o seu npub
copy-nsec = Copiar
    .aria-label = Copiar o seu nsec
copy-ncryptsec = Copiar
    .aria-label = Copiar o seu ncryptsec
show = Mostrar
hide = Ocultar
print = Imprimir uma folha
print-title = Chave Nostr: guarde esta folha onde mais ninguém a veja
copied = Copiado.
copy-selected = O seu navegador não deixa a página copiar. O texto está selecionado: copie você mesmo.
copy-shown = O seu navegador não deixa a página copiar. Mostre o texto e copie você mesmo.
save-asked = O navegador recebeu o pedido de salvar. Se não ofereceu, use Copiar.
save-refused = O seu navegador não o salva para esta página. Use Copiar e cole no seu gerenciador de senhas.
qr-note = O mesmo como código QR, para outro aparelho seu. Quem o fotografar tem a sua chave.
qr-nsec = Código QR do seu nsec
qr-message = Código QR da mensagem
ncryptsec-title = Com uma senha (ncryptsec)
ncryptsec-lead = Para apps que aceitam uma chave cifrada. Sem a senha ela não vale nada, nem para você.
password = Senha
no-password = Ainda não há senha. Escreva uma.
encrypt = Cifrar
encrypted = Cifrada.
ncryptsec-label = O seu ncryptsec
apps-title = Use em um app
apps-lead = Abra um, escolha “entrar” e cole o seu nsec:
app-primal = Primal: celulares e web
app-amethyst = Amethyst: Android; aceita também um ncryptsec
app-damus = Damus: iPhone
app-coracle = Coracle: web
app-device = O app de Nostr deste aparelho
new-account = Esta é uma conta nova. Os seguidores de uma antiga não vêm junto: diga a eles o seu novo npub.
half-served = A sua metade já foi usada. Nunca a use para outra chave: quem tem uma das duas pode calcular a outra.
half-served-twice =
    ATENÇÃO: esta metade já formou outra chave. Quem tem uma das duas pode calcular a outra. Use só uma, e crie uma nova
    metade para a próxima.
other-answer =
    O bot já enviou outra resposta a este pedido. Duas chaves de uma metade denunciam uma à outra, por isso esta é
    recusada. Peça de novo.
tab-holds = Esta aba guarda a sua chave até você mandar esquecer ou fechá-la.
forget = Salvei a minha chave: esquecer tudo aqui
forget-sure = Você não copiou, mostrou nem salvou a sua chave. Sem ela ninguém pode usar o npub. Esquecer?
forgotten = Esquecido: nada deste pedido ficou neste navegador.
clipboard-has = A sua área de transferência ainda tem a chave.
clear-clipboard = Limpar a área de transferência
clipboard-cleared = A área de transferência está limpa. Um histórico dela ainda pode ter a chave.
clipboard-stays = O seu navegador não deixa a página fazer isso. Copie outra coisa.

leave-key = Você não copiou, mostrou nem salvou a sua chave. Seguir o endereço mudado?
leave-half = A sua metade não está guardada. A resposta seria perdida. Seguir o endereço mudado?
again-sure = Você não guardou este pedido. O bot recebe o aviso de parar, e a resposta seria perdida. Continuar?

## By hand

manual-title = À mão: sem conexão, com a sua própria conta Nostr
manual-lead =
    Crie a metade aqui, envie você mesmo a mensagem e volte com a resposta do bot. Isso funciona sem conexão: salve esta
    página e abra-a sem rede se quiser.
manual-ask = Pedir
manual-make = Criar a minha metade
half-title = Guarde a sua metade
half-warning =
    É secreta, e necessária depois. A procura pode levar dias, e esta página esquece a metade ao ser fechada. Sem ela a
    resposta não vale nada. Ela serve para um só pedido: crie uma nova para o próximo.
half-label = A sua metade
copy-half = Copiar
    .aria-label = Copiar a sua metade
half-passphrase = Ou como arquivo, com uma frase secreta
half-saved = Salva, a não ser que o navegador tenha perguntado e você tenha dito não.
half-kept = Guardei a minha metade em um lugar seguro
half-replace = Você não guardou a metade anterior. Substituir? Uma resposta para ela seria perdida.
send-title = Envie isto ao bot
send-lead = Como mensagem direta, de qualquer conta Nostr. Nada nela é secreto.
message-label = Mensagem
copy-message = Copiar
    .aria-label = Copiar a mensagem
send-then = O bot responde com um texto que começa com ntweak1. Volte com ele ao passo 2.
work-title = Um bot pede trabalho
work-answer = A resposta do bot
work-help =
    Cole a resposta inteira. O seu navegador faz o trabalho, e você envia a linha que ele cria em uma só mensagem com
    o seu pedido. Deixe esta página aberta; funciona sem conexão.
work-line = A linha para enviar
copy-line = Copiar a linha
work-do = Fazer o trabalho
work-stop = Parar
work-stopped = Parado.
work-added = Pronto. Envie a linha em uma só mensagem com o seu pedido. Ela vale uma vez, hoje.
work-none = Não há uma linha “npubbot work …” com um número até { $most }. Cole a resposta inteira do bot.
manual-finish = Terminar
half-in-file = A minha metade está em um arquivo
the-file = O arquivo
file-passphrase = A frase secreta do arquivo
open-file-button = Abrir o arquivo
half-opened = Aberto. Agora cole a resposta do bot.
answer-label = A resposta do bot
asked-for = O padrão que você pediu (conferido, se houver)
make-key = Formar a minha chave

## Texts that are pasted

text-missing =
    { $kind ->
        [nhalf] Falta a sua metade. Cole o texto que começa com nhalf1.
       *[ntweak] Falta a resposta do bot. Cole o texto que começa com ntweak1.
    }
text-damaged =
    { $kind ->
        [nhalf] Esta metade está danificada
       *[ntweak] Esta resposta está danificada
    }: falta uma parte ou há um erro de digitação. Copie todo o texto { $kind }1… de novo.
text-version = Este texto { $kind }1… tem a versão { $version }, e esta página lê a versão 1. Consiga uma cópia mais nova da página.
text-several = Há { $count } textos { $kind }1… nele. Cole um.
text-other =
    { $other ->
        [nsec] Esta é uma chave secreta (nsec). Não a cole onde não for preciso.
        [ncryptsec] Esta é uma chave secreta cifrada (ncryptsec).
        [npub] Esta é uma chave pública (npub).
        [nprofile] Este é um perfil (nprofile).
        [nhalf] Esta é a sua metade, que é secreta: nunca a envie a ninguém.
        [ntweak] Esta é a resposta do bot.
       *[none] Este é outro texto.
    } O que vai aqui começa com { $kind }1.
half-no-key = Esta metade contém um número que não é chave. Crie uma nova metade e peça de novo.
tweak-damaged = Esta resposta contém um número que não pode existir. Peça ao bot de novo.
tweak-other-half = Esta resposta foi feita para outra metade. Cole a metade com que você pediu.
tweak-cancels = Esta resposta e esta metade se anulam, e não sobra chave. Crie uma nova metade e peça de novo.
tweak-unfit =
    A chave que resulta é { $npub }, que não serve para { $patterns }. Confira o padrão que você pediu. Se estiver certo,
    o bot respondeu errado: crie uma nova metade e peça de novo.

## About the page

about = Sobre esta página
connects-nothing = O endereço dela não indica nenhum bot, então ela não se conecta a nada: a política de segurança de conteúdo dela proíbe.
connects-to = Ela se conecta a { $relays }, e a mais nada: a política de segurança de conteúdo dela não permite mais.
about-file = É um só arquivo. O SHA-256 dele, como o seu navegador o leu:
about-same = O anúncio assinado do bot indica a mesma página.
about-other = O anúncio assinado do bot indica outra página: { $hash }. Se você mesmo não escolheu esta, não a use.
about-hash =
    Uma página que mente pode mostrar qualquer número. Antes de confiar muito a ela, salve o arquivo, deixe o sha256sum
    calcular e compare com as notas da versão do npubbot.
about-install = Para tê-la como app, escolha “Instalar” ou “Adicionar à tela inicial” no menu do navegador.
