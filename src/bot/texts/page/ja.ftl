# The page in Japanese. No native reader has checked it yet.
# The messages are those of en.ftl; docs/developers/translating.md says what to mind.

text-direction = ltr
sentence = { $text }。

## The first screen

page-title = npubbot：npubを選ぶ
page-title-found = npubbot：鍵が見つかりました
heading = 好きな文字で始まるNostrの鍵
lead-nostr = Nostrは、だれのものでもない投稿とメッセージのネットワークです。npubはそこでの公開の名前で、nsecはその秘密鍵です。
lead-half = 秘密の半分はこのブラウザーで作られ、外に出ません。ですから、あなた以外のだれも鍵を持てません。
language = 言語
ask-title = npubを何で始めますか
characters-help = 英小文字と数字が使えます。1、b、i、oはnpubにありません。
more-patterns = ほかのパターン
several-help = 空白で区切っていくつか書くと、最初に見つかったものになります。
find-key = 鍵を探す
searching-bot = ボットを探しています…
bot-found = { $relays }を通して{ $bot }（{ $npub }…）に頼みます。
bot-asleep = { $bot }は今オフラインです。頼むことはできます。戻ったときに返事が来ますので、それまで依頼を保存しておいてください。
relays-dead = このリンクのリレーにはどれにも接続できません。接続を確かめてもう一度試すか、新しいリンクを入手してください。
bot-unknown = ボットがまだ見つかっていません。少し待つか、もう一度試してください。
the-bot = ボット
try-again = もう一度試す
open-file = ファイルに保存した依頼を開く
use = { $pattern }を使う
spellings = ほかの書き方

rarity-later = どのくらい珍しく、どのくらいかかるかは、ボットが知らせます。
time-later = どのくらいかかるかは、ボットが知らせます。
best-time = ボットは{ $span }探し、その鍵がどのくらい珍しいかを知らせます。
too-long = それには{ $span }ほどかかります。このボットが探すのは{ $limit }までです。短くしてください。
too-long-fits = それには{ $span }ほどかかります。このボットが探すのは{ $limit }までです。次のものなら探せます。
no-pattern = npub1のあとに続く文字を書いてください（例：m0ctane）

## Links

link-nsec = これは秘密鍵（nsec）です。だれにも見せず、どこにも貼り付けないでください。ボットに頼むには、ボットのnpubを貼り付けてください。
link-none = ここにはボットの名前がありません。ボットのnpub1…またはリンクを貼り付けてください。
link-damaged = ボットのnpubが壊れています。一部が欠けているか、間違っています。リンク全体をもう一度コピーしてください。
address-nsec = このアドレスに秘密鍵（nsec）がありました。ほかの人に見られたかもしれません。その鍵を使うのをやめて、新しい鍵を作ってください。
no-bot-title = このページに頼んでもらう
bot-label = ボットのnpubまたはリンク
bot-help = ページはボットのリレーだけに接続します。
open = 開く

## Waiting

request-title = 依頼：{ $patterns }
step-wait = ボットを待っています
step-search = 探しています
step-found = 見つかりました
step-done = ：完了
step-now = ：今
chance-key = 鍵がもう見つかっている確率
chance-work = 作業がもう終わっている確率
part-over = 過ぎた時間の割合
connecting = 接続しています…
relays-gone = 今はどのリレーにも接続できません。ページは試し続けます。接続を確かめてください。
sending = 依頼を送っています…
waiting = ボットの返事を待っています…
no-answer = ボットからまだ返事がありません。忙しいか、オフラインかもしれません。下で依頼を保存して、あとでまた来てください。
searching = ボットが探しています（ジョブ{ $job }）。
refused = 何も始めていません。ボットの返事を読んで、ほかのものを頼んでください。
stopping = ボットに停止を伝えています…
stopped = 停止しました。ほかのものを頼めます。
working = 今は頼む人が多いため、ボットがまず作業を求めています。このブラウザーが行います。
worked = 作業が終わりました。ボットの返事を待っています…
work-percent = { $percent }％終わりました。あと{ $span }ほどです。
work-percent-only = { $percent }％終わりました。
so-far = 今までに{ $elapsed }です。
so-far-of = { $time }のうち{ $elapsed }過ぎました。
so-far-expected = 今までに{ $elapsed }です。見込みは{ $time }ほどです。
so-far-late = 今までに{ $elapsed }です。見込みは{ $time }ほどでした。長引いていますが、いつ見つかってもおかしくありません。
bot-says = ボットの返事
stop-search = 探すのをやめる
ask-again = ほかのものを頼む

## Keeping a request

keep-title = 待つ間、このページを閉じますか
keep-why = 秘密の半分はこのタブにしかありません。パスフレーズをかけて保存すれば、あとで鍵を取りに来られます。
keep-passphrase = 忘れないパスフレーズ
keep-here = このブラウザーに保存
keep-file = ファイルに保存
is-kept = この依頼は保存されています。ページを閉じて、また来られます。
kept-here = このブラウザーに保存しました。ページを閉じて、パスフレーズでまた来られます。
kept-file = 保存しました（ブラウザーの確認を断った場合を除きます）。ページを閉じて、パスフレーズでまた来られます。
kept-title = 続きから始める
kept-requests = 保存した依頼
kept-asked = { $when }の依頼
saved-file = 保存したファイル
its-passphrase = そのパスフレーズ
go-on = 続ける
delete-kept = この依頼を消す
delete-sure = この依頼を消しますか。これがないと、ボットの返事は役に立ちません。
no-passphrase = パスフレーズがまだありません。入力してください。
wrong-passphrase = パスフレーズが違います。もう一度試してください。
file-damaged = このファイルは壊れているか、このページのものではありません。ほかのファイルを選んでください。
file-large = このファイルはこのページのものとしては大きすぎます。ほかのファイルを選んでください。
file-none = ファイルがまだ選ばれていません。
kept-many = このブラウザーにはもう{ $count }件の依頼があります。これはファイルに保存してください。
keeps-nothing = このブラウザーはこのページのものを保存しません。ファイルに保存してください。
no-request = これは保存した依頼ではないか、壊れています。
slow = 処理中です。わざと時間をかけています。
no-memory = うまくいきませんでした。メモリーが足りないのかもしれません。ほかのタブを閉じて、もう一度試してください。
went-wrong = 問題が起きました。ページを読み込み直してください。

## The key

done-title = 鍵が見つかりました
npub-label = 公開：npub
nsec-label = 秘密：nsec
nsec-warning = 今すぐパスワードマネージャーに保存してください。これを持つ人があなたになり、なくしてもだれも返せません。
save-nsec = パスワードマネージャーに保存
copy = コピー
copy-npub = コピー
    .aria-label = npubをコピー
copy-nsec = コピー
    .aria-label = nsecをコピー
copy-ncryptsec = コピー
    .aria-label = ncryptsecをコピー
show = 表示
hide = 隠す
print = 紙に印刷
print-title = Nostrの鍵：ほかの人の目に触れない場所に保管してください
copied = コピーしました。
copy-selected = このブラウザーではページからコピーできません。文字が選択されていますので、ご自分でコピーしてください。
copy-shown = このブラウザーではページからコピーできません。表示して、ご自分でコピーしてください。
save-asked = ブラウザーに保存を頼みました。何も出なければ「コピー」を使ってください。
save-refused = このブラウザーはこのページのものを保存しません。「コピー」を使い、パスワードマネージャーに貼り付けてください。
qr-note = 同じものをQRコードにしたものです。ご自分の別の端末で使えます。写真に撮った人は鍵を手に入れます。
qr-nsec = nsecのQRコード
qr-message = メッセージのQRコード
ncryptsec-title = パスワード付き（ncryptsec）
ncryptsec-lead = 暗号化した鍵を受け付けるアプリのためのものです。パスワードがなければ、あなたにも使えません。
password = パスワード
no-password = パスワードがまだありません。入力してください。
encrypt = 暗号化
encrypted = 暗号化しました。
ncryptsec-label = ncryptsec
apps-title = アプリで使う
apps-lead = どれかを開いて「ログイン」を選び、nsecを貼り付けてください。
app-primal = Primal：スマートフォンとウェブ
app-amethyst = Amethyst：Android（ncryptsecも使えます）
app-damus = Damus：iPhone
app-coracle = Coracle：ウェブ
app-device = この端末のNostrアプリ
new-account = これは新しいアカウントです。前のアカウントのフォロワーは引き継がれません。新しいnpubを知らせてください。
half-served = この半分は使い終わりました。ほかの鍵には決して使わないでください。一方の鍵を持つ人は、もう一方を計算できます。
half-served-twice = 警告：この半分は前に別の鍵を作りました。一方の鍵を持つ人は、もう一方を計算できます。使うのは一つだけにして、次の鍵には新しい半分を作ってください。
other-answer = ボットは前にこの依頼に別の返事をしました。一つの半分から作った二つの鍵は互いを明かしてしまうため、この返事は使いません。もう一度頼んでください。
tab-holds = このタブは、忘れさせるか閉じるまで鍵を持っています。
forget = 鍵を保存しました：ここからすべて消す
forget-sure = 鍵をコピーも表示も保存もしていません。鍵がなければ、このnpubはだれにも使えません。消しますか。
forgotten = 消しました。この依頼のものはこのブラウザーに残っていません。
clipboard-has = クリップボードにはまだ鍵があります。
clear-clipboard = クリップボードを消す
clipboard-cleared = クリップボードを消しました。履歴にはまだあるかもしれません。
clipboard-stays = このブラウザーではページからできません。何かほかのものをコピーしてください。

leave-key = 鍵をコピーも表示も保存もしていません。変わったアドレスに移りますか。
leave-half = 半分が保存されていません。返事が使えなくなります。変わったアドレスに移りますか。
again-sure = この依頼は保存されていません。ボットに停止を伝え、返事は使えなくなります。続けますか。

## By hand

manual-title = 手作業：オフラインで、自分のNostrアカウントを使う
manual-lead = ここで半分を作り、メッセージを自分で送り、ボットの返事を持って戻ってください。オフラインで使えます。このページを保存して、ネットワークなしで開くこともできます。
manual-ask = 頼む
manual-make = 半分を作る
half-title = 半分を保管してください
half-warning = 秘密のもので、あとで必要です。探すのに何日もかかることがあり、このページは閉じると半分を忘れます。これがないと返事は役に立ちません。一つの依頼にしか使えません。次の依頼には新しく作ってください。
half-label = あなたの半分
copy-half = コピー
    .aria-label = 半分をコピー
half-passphrase = またはパスフレーズ付きのファイルに
half-saved = 保存しました（ブラウザーの確認を断った場合を除きます）。
half-kept = 半分を安全な場所に保管しました
half-replace = 前に作った半分を保管していません。置き換えますか。その返事は使えなくなります。
send-title = これをボットに送ってください
send-lead = どのNostrアカウントからでも、ダイレクトメッセージで送れます。秘密は入っていません。
message-label = メッセージ
copy-message = コピー
    .aria-label = メッセージをコピー
send-then = ボットはntweak1で始まる文字列を返します。それを持って手順2に進んでください。
work-title = ボットが計算を求めています
work-answer = ボットの返事
work-help =
    返事をすべて貼り付けてください。ブラウザーが計算してできた行を、頼みごとと一つのメッセージで送ってください。このページを開いたままにしてください。接続は要りません。
work-line = 送る行
copy-line = 行をコピー
work-do = 作業をする
work-stop = やめる
work-stopped = やめました。
work-added = 終わりました。この行を、頼みごとと一つのメッセージで送ってください。今日一度だけ使えます。
work-none = { $most }までの数が付いた「npubbot work …」の行が見つかりません。ボットの返事をすべて貼り付けてください。
manual-finish = 仕上げる
half-in-file = 半分はファイルにあります
the-file = ファイル
file-passphrase = ファイルのパスフレーズ
open-file-button = ファイルを開く
half-opened = 開きました。次にボットの返事を貼り付けてください。
answer-label = ボットの返事
asked-for = 頼んだパターン（あれば確かめます）
make-key = 鍵を作る

## Texts that are pasted

text-missing =
    { $kind ->
        [nhalf] 半分がありません。nhalf1で始まる文字列を貼り付けてください。
       *[ntweak] ボットの返事がありません。ntweak1で始まる文字列を貼り付けてください。
    }
text-damaged =
    { $kind ->
        [nhalf] この半分は壊れています。
       *[ntweak] この返事は壊れています。
    }一部が欠けているか、間違っています。{ $kind }1…の文字列全体をもう一度コピーしてください。
text-version = この{ $kind }1…の文字列は版{ $version }です。このページが読めるのは版1です。新しいページを入手してください。
text-several = { $kind }1…の文字列が{ $count }個あります。一つだけ貼り付けてください。
text-other =
    { $other ->
        [nsec] これは秘密鍵（nsec）です。必要のない場所には貼り付けないでください。
        [ncryptsec] これは暗号化した秘密鍵（ncryptsec）です。
        [npub] これは公開鍵（npub）です。
        [nprofile] これはプロフィール（nprofile）です。
        [nhalf] これはあなたの半分で、秘密です。だれにも送らないでください。
        [ntweak] これはボットの返事です。
       *[none] これは別の文字列です。
    }ここに入るものは{ $kind }1で始まります。
half-no-key = この半分の数は鍵になりません。新しい半分を作って、もう一度頼んでください。
tweak-damaged = この返事には、ありえない数が入っています。もう一度ボットに頼んでください。
tweak-other-half = この返事は別の半分のためのものです。頼んだときの半分を貼り付けてください。
tweak-cancels = この返事と半分が打ち消し合い、鍵が残りません。新しい半分を作って、もう一度頼んでください。
tweak-unfit = できた鍵は{ $npub }で、{ $patterns }に当てはまりません。頼んだパターンを確かめてください。正しければ、ボットの返事が間違っています。新しい半分を作って、もう一度頼んでください。

## About the page

about = このページについて
connects-nothing = アドレスにボットの名前がないため、何にも接続しません。コンテンツセキュリティポリシーが禁じています。
connects-to = { $relays }だけに接続します。コンテンツセキュリティポリシーがそれ以外を許しません。
about-file = 一つのファイルです。ブラウザーが読んだとおりのSHA-256は次のとおりです。
about-same = ボットの署名付きの告知にあるのは、同じページです。
about-other = ボットの署名付きの告知にあるのは、別のページです：{ $hash }。ご自分で選んだページでなければ、使わないでください。
about-hash = 嘘をつくページは、どんな数でも表示できます。大切なことに使う前に、ファイルを保存してsha256sumで計算し、npubbotのリリースノートと比べてください。
about-install = アプリとして使うには、ブラウザーのメニューで「インストール」または「ホーム画面に追加」を選んでください。
