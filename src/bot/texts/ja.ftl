# Japanese. No native reader has checked it yet.
# The messages are those of en.ftl; docs/developers/translating.md says what to mind.

language-name = 日本語
-example = m0ctane

## Words to type. Each is understood, and shown in the messages below.

command-help = ヘルプ
command-status = 状態
command-cancel = キャンセル
command-resend = 再送
command-stop = 停止
command-start = 開始
command-delete = 削除
command-split = split
command-find = 検索
command-explain = 説明
command-language = 言語

## Numbers and spans of time

decimal = .
number-names = myriads
amount =
    { $unit ->
        [man] { $number }万
        [oku] { $number }億
        [cho] { $number }兆
        [kei] { $number }京
        [gai] { $number }垓
       *[none] { $number }
    }
odds = 当てはまる鍵は約{ $amount }個に1個です。
speed = 毎秒{ $amount }個
span =
    { $unit ->
        [seconds] { $count }秒
        [minutes] { $count }分
        [hours] { $count }時間
        [days] { $count }日
        [years] { $count }年
       *[instant] 1秒未満
    }
span-hours-minutes = { $hours }時間{ $minutes }分
span-again =
    { $unit ->
        [seconds] { $count }秒
        [minutes] { $count }分
        [hours] { $count }時間
        [days] { $count }日
       *[years] { $count }年
    }
takes-exactly = { $mean }で見つかります。
takes-little = ふつう{ $mean }で見つかります。{ $most }を超えることはまれです。
takes-about = { $mean }ほどかかります。{ $most }を超えることはまれです。

## Lists

comma = { "、" }
more = ほか{ $count }件
list-and-more = { $list }、ほか{ $count }件
any-of = { $list }、{ $last }のうち先に見つかったもの

## Acceptance

accepted = ジョブ{ $job }：{ $patterns }を探します。
no-speed-yet =
    まだ速度を測っていません。あとで次のように送ると、かかる時間がわかります。
    { command-status }
queue = 先に待っている人がいます。順番まで約{ $span }です。
rests-until = 装置は{ $time }まで休止中です。その後、探索を再開します。
rests-now = 装置はいま休止中です。動けるようになり次第、探索を再開します。
at-your-point = あなたの半分から探します。
place-in-line = 順番は{ $place }番目です。
tweak-comes = こちらの部分をこのチャットに送ります。秘密ではありません。あなたの半分と合わせたときだけ鍵になります。
key-comes = 鍵はこのチャットに届きます。
best-likely = おそらく{ $amount }個に1個か、それより珍しい鍵になります。
best-takes = 約{ $span }で届きます。
expensive =
    このような鍵は、半分を自分で持つこともできます。やり方：
    { command-help } { command-split }
to-stop =
    やめるには、次のように送ってください。
    { command-cancel } { $number }

## Help and status

help =
    お好きな文字で始まるnpubのNostr鍵を探します。
    npub1のあとに続けたい文字を送ってください。
    { -example }
    いくつか送ると、どれか1つが見つかった時点で終わります。
    cat dad
    ほかに使える言葉：
    { command-status }：自分のジョブを見る
    { command-cancel }：ジョブをやめる（{ command-cancel } 12 とも書けます）
    { command-resend }：最後の鍵をもう一度受け取る
    { command-explain }：ほかに探せるもの（似た文字など）を見る
    surprise：単語で始まる鍵をためしに1つ
    { command-find } gm：ほかの意味に取られる言葉を探す
    { command-stop }：こちらから何も送らないようにする
    { command-delete }：あなたの記録を消す
    lang en：English
    鍵は運営者のマシンで作ります。半分を自分で持つこともできます。やり方：
    { command-help } { command-split }
at-work = 全員の進行中のジョブは{ $jobs }件です。鍵を{ $speed }調べています。
at-work-unmeasured = 全員の進行中のジョブは{ $jobs }件です。速さはまだ測っていません。
job-line = ジョブ{ $job }：{ $patterns }、経過{ $waited }。
job-line-expected = ジョブ{ $job }：{ $patterns }、経過{ $waited }、予想は約{ $mean }（ここまでに見つかる確率は{ $chance } %）。
job-line-best = ジョブ{ $job }：{ $best }、経過{ $waited }、ここまでの最高は{ $amount }個に1個。
and-more-jobs = ほかに{ $count }件あります。
no-jobs =
    進行中のジョブはありません。始めるには、文字を送ってください。
    { -example }
kept-keys =
    もう一度送れる鍵：{ $jobs }。次のように送ってください。
    { command-resend }

## Cancelling, and sending again

cancelled = ジョブ{ $jobs }をキャンセルしました。
no-such-job = 進行中のジョブ{ $job }はありません。
no-open-job = キャンセルできるジョブはありません。
start-one =
    始めるには、文字を送ってください。
    { -example }
cancel-one =
    進行中のジョブは{ $jobs }です。やめるには、次のように送ってください。
    { command-cancel } { $number }
sent-again =
    ジョブ{ $job }の鍵をもう一度送ります。
    前と同じメッセージです。すでに届いている場合は、上のほうに表示されています。
no-such-key = ジョブ{ $job }の鍵は残っていません。
no-key = あなたの鍵は残っていません。
resend-later = ジョブが終わったあとは、{ command-resend } でもう一度受け取れます。
resend-one =
    { $jobs }の鍵をもう一度送れます。次のように送ってください。
    { command-resend } { $number }

## What is not understood

find-it = { command-find } { $prefix }
bad-word = { $word }：{ $reason }。
send-only-the-prefix =
    何も始めていません。文字だけを送ってください。
    { -example }
    または：
    { command-help }
pattern-empty = 文字がありません。次の文字を1〜{ $most }個送ってください：{ $alphabet }
pattern-too-long = { $characters }文字は長すぎます。npubで選べるのは{ $most }文字までです
pattern-forbidden = 「{ $character }」はnpubに使えません。使える文字：{ $alphabet }
pattern-forbidden-one = 「{ $character }」はnpubに使えません。「{ $first }」なら使えます
pattern-forbidden-two = 「{ $character }」はnpubに使えません。「{ $first }」や「{ $second }」なら使えます
pattern-impossible = このように始まる公開鍵はありません。最初の{ $count }文字までなら可能です
pattern-look-alike = { $reason }。{ $pattern } なら似た文字のどの書き方でも探します
pattern-anything = どの鍵にも当てはまります。少なくとも1文字を指定してください
pattern-class = 1か所に複数の文字を許すには [s5] のように書きます
pattern-number = { $keyword } のあとには{ $least }から{ $most }までの数を書きます。例：{ $example }
pattern-number-nearest = { $keyword } のあとには{ $least }から{ $most }までの数を書きます。いちばん近いのは { $nearest } です
pattern-hex = hex: のあとには0〜9とa〜fを1〜64桁書きます。例：hex:c0de
pattern-hex-one = hex: のあとには0〜9とa〜fを1〜64桁書きます。{ $first } なら可能です
pattern-hex-too-long = 鍵は16進数で{ $most }桁です。これは{ $digits }桁なので、{ $more }桁減らしてください
pattern-within = @ はアスタリスクで囲んだ文字のあとに置き、何文字以内かを表します。例：*m0ct*@12
pattern-within-one = @ はアスタリスクで囲んだ文字のあとに置き、何文字以内かを表します。{ $first } なら可能です
pattern-too-many = 先頭以外も指定するとき、選べるのは{ $most }文字までです。これは{ $characters }文字です
pattern-ending = 最後から7文字目は必ずqかsです
pattern-ending-one = 最後から7文字目は必ずqかsです。{ $first } なら可能です
pattern-too-intricate = 決まっていない場所が多すぎます。減らしてください
pattern-best = best は時間をつけて単独で送ってください（best 10m、best zeros 10m、best words 10m など）。surprise は単独で送ってください
unsupported =
    それは読み取れません。何も始めていません。
    鍵の末尾は、前に星印を付けます：{ "*m0ct" }。使えるパターンを見るには：
    { command-explain }
unsupported-nearest =
    いちばん近いのはこちらです。
    { command-find } { $nearest }
unsupported-example =
    文字を送ってください。たとえば：
    { -example }
hello =
    こんにちは。npubの最初に使いたい文字を送ってください。たとえば：
    { -example }
search-for-it =
    npub1{ $prefix } そのものを探すには、次のように送ってください。
    { command-find } { $prefix }
secret-key =
    それは秘密鍵です。誰にも見せず、もう使わないでください。
    こちらには残していませんが、リレーやクライアントを通ってきています。
    新しい鍵を作るには、文字だけを送ってください。
    { -example }
seed-answer = 選んだnpubを12語や24語のシードから作ることはできません。nsecがバックアップになります。
nothing =
    メッセージに言葉が見つかりません。
    npubの最初に使いたい文字を送ってください。
    { -example }
    または：
    { command-help }
text-only =
    読めるのは文字だけです。ファイルは読めません。
    npubの最初に使いたい文字を送ってください。
    { -example }
no-groups =
    このメッセージは複数の人に送られています。鍵はあなただけのものです。
    ほかに誰もいないチャットで送ってください。

## Offers and frequent questions

offer-impossible = 「{ $character }」は npub に使えません。まだ何も始めていません。見た目の近いものを探すには、こう送ってください:
offer-accent = npub にはアクセント記号や区切りの記号は使えません。まだ何も始めていません。記号なしで探すには:
offer-script = 「{ $character }」は「{ $latin }」に似た別の文字です。まだ何も始めていません。正しい文字で探すには:
offer-unsure = ご希望がはっきりしないので、まだ何も始めていません。これを探すには、こう送ってください:
offer-uneven = { $easiest } はほかより1000倍以上見つかりやすく、必ずそちらが先に見つかります。まだ何も始めていません。ほかだけを探すには:
offer-change =
    ジョブ { $job } は続いていて、ほかには何も始めていません。変更するには、順に送ってください:
    { command-cancel } { $number }
show-delete =
    ここにあるジョブとメッセージ、再送できる鍵がすべて消えます。よろしければ、こう送ってください:
    { command-delete }
show-stop =
    こちらからのメッセージを止めるには、こう送ってください:
    { command-stop }
answer-who =
    ご希望の文字で始まる npub の鍵を探すプログラムです。オープンソースの npubbot で、この npub の運営者が動かしています。
    メッセージをくださった方にだけ返事をします。今後のメッセージを止めるには:
    { command-stop }
answer-price = 無料です。お金は一切いただきません。
answer-safety =
    鍵は運営者のマシンのメモリーの中で作られ、暗号化して送られます。運営者を信頼できる範囲でお使いください。
    運営者には、あなたの npub と依頼の内容が見えます。それを消すには:
    { command-delete }
    鍵の半分を自分で持つこともできます。方法はこちら:
    { command-help } { command-split }
answer-import =
    nsec1 で始まる行を全部コピーして、クライアントで秘密鍵を入れるところ（ログイン、nsec）に貼り付けてください。そのあと、こちらのメッセージを削除してください。
    これは新しいアカウントになります。今お持ちの鍵は変えられません。そのまま使えて、フォロワーもそちらに残ります。
    最後の鍵をもう一度受け取るには:
    { command-resend }
thanks-answer = どういたしまして！別の鍵が必要なら、先頭の文字を送ってください。
chat-answer =
    鍵を探すことだけができます。npub の先頭にしたい文字を送ってください:
    { -example }
which-next =
    どれにしましょうか。先頭の文字を全部送ってください。たとえば:
    { -example }
latin-letters =
    npub に使えるのは英字と数字だけです。ローマ字で書いてください。たとえば:
    { "~hanako" }
foreign-language = その言語はわかりません。使える言語: { $names }
other-job =
    ジョブ { $job } も続いています。そちらを止めるには:
    { command-cancel } { $number }
page = ウェブページもあります: { $url }

## Patterns

means = { $pattern }：{ $meaning }。
meaning-start = npub1{ $text }で始まる
meaning-alike = npub1のあとが「{ $text }」に似た文字の書き方で始まる
meaning-middle =
    { $from ->
        [start] そのあとのどこかに { $text } がある
       *[npub] npub1のあとのどこかに { $text } がある
    }
meaning-within = npub1のあとの{ $count }文字以内に { $text } がある
meaning-end = { $text } で終わる（チェックサムを含む）
spelling = 「{ $text }」に似た文字の書き方
meaning-equal = npub1のあとが同じ文字{ $count }個で始まる
meaning-equal-anywhere = どこかに同じ文字が{ $count }個続く
meaning-hex-start = 公開鍵の16進数が { $text } で始まる
meaning-hex-end = 公開鍵の16進数が { $text } で終わる
meaning-zeros = 公開鍵の先頭{ $count }ビットが0
meaning-words = npub1のあとが、リストにある{ $count }文字以上の単語で始まる
meaning-best =
    { $span }の検索で見た中で最も珍しい鍵（{ $family ->
        [zeros] 先頭の0のビット
        [words] 先頭のリストの単語
       *[any] 先頭の0のビット、同じ文字、または単語
    }で比べる）
open-place = ? はどの文字でもよい
one-of = かっこの中はそのうちの1文字
looks-alike =
    見た目が似ていて、こちらなら{ $span }です。
    { command-find } { $pattern }
needs-start = それは探せません。鍵の先頭で決まる部分が少なすぎます。
nothing-started = 何も始めていません。
too-wide =
    鍵の始まり方が{ $asked }通りになります。1つのジョブで受け付けるのは{ $allowed }通りまでです。
    何も始めていません。パターンか、決まっていない場所を減らしてください。
too-many-ends =
    鍵の始まりをほとんど決めないパターンは、1つのジョブで{ $allowed }個までです。このジョブには{ $asked }個あります。
    何も始めていません。パターンを減らすか、始まりの文字を増やしてください。
too-wide-now =
    今は探している始まり方が多すぎるため、簡単なパターンだけを受け付けます。
    何も始めていません。あとでもう一度試すか、先頭の文字だけを送ってください。
    { -example }
explain-find =
    探すには、次のように送ってください。
    { command-find } { $pattern }
kinds =
    次のようなパターンで鍵を探します。
    { -example }：npub1のあとの文字
    m0?tane：? はどの文字でもよい
    { "[s5]at0sh" }：かっこの中のどれか1文字
    { "~m0ctane" }：似た文字のどの書き方でもよい
    =7：同じ文字7個
    hex:c0de：公開鍵の16進数
    zeros:24：公開鍵の先頭の0のビット
    words:8：リストにある8文字以上の単語
    best 10m：10分間に見た中で最も珍しい鍵
    surprise：10秒間に見た中で最も長い単語
    意味とかかる時間を知るには、次のように送ってください。
    { command-explain } { "~m0ctane" }

## Limits

too-many-prefixes =
    { $asked }語ありますが、1つのジョブで受け付けるのは{ $allowed }語までです。
    いちばん好きなものを{ $allowed }語まで送ってください。
already-searching =
    同じものをジョブ{ $job }ですでに探しています。
    進み具合を見るには：
    { command-status }
    やめるには：
    { command-cancel } { $number }
result-not-taken =
    見つけた鍵がまだここにあります。あなたのリレーが受け取っていません。何も始めていません。
    リレーが受け取れるようになったら、次のように送ってください。
    { command-resend }
too-many-not-taken = 受け取られていない鍵が多すぎるため、新しい方のジョブは始められません。あとでもう一度試してください。
too-many-open =
    進行中のジョブが{ $count }件あります（{ $jobs }）。上限は{ $allowed }件です。
    どれかが終わるまで待つか、1つやめてください。
    { command-cancel } { $number }
too-many-today =
    この24時間に{ $allowed }件始めました。これが上限です。
    次に始められるのは{ $span }後です。
too-hard = それには約{ $span }かかります。{ $limit }より長くかかるものは受け付けていません。
too-hard-all = 今は何も受け付けられません。あとでもう一度お試しください。
too-hard-up-to = 今は{ $characters }文字まで受け付けます。
best-too-long =
    最も珍しい鍵を探すのは{ $limit }までです。何も始めていません。次のように送ってください。
    { command-find } { $best }
not-measured =
    今は速度がわからないので、かかる時間もわかりません。
    今は{ $characters }文字まで使えます。それより長い場合は、1分後にもう一度お試しください。
needs-sealed =
    お使いのクライアントは古い形式（NIP-04）で送っています。私はNIP-17のメッセージだけに対応しています。
    NIP-17に対応したクライアント（Amethyst、0xchat、Coracle、Nosturなど）から送り、DM用リレーを公開してください。
needs-sealed-page = または、クライアントなしで私のページをお使いください。{ $page }
friends-only = このボットは、運営者の友人のためだけに探します。
restored =
    このメッセージのあとにバックアップから復元されたため、すでに返事をしたかもしれません。
    まだ必要なら、もう一度送ってください。分割鍵の場合は、先に新しい半分を作ってください。
price =
    今は多くの人が鍵を頼んでいるため、お使いの機器に少し計算をしてもらう必要があります（プルーフ・オブ・ワーク{ $bits }ビット、スマートフォンで{ $span }ほど）。何も始めていません。
price-page = 計算はこのページでもできます。{ $page }
price-command =
    npubbotのあるパソコンでは、次のコマンドで計算できます。
    { $command }
    表示された行を付けて、もう一度送ってください。または、あとでお試しください。
work-alone =
    これは計算の結果（プルーフ・オブ・ワーク）です。次のように、頼みごとと一つのメッセージで送ってください。
    { -example }
    work …
paused =
    メッセージが多すぎます。次の返事は{ $time }以降です。
    進行中のジョブは続いています。

## Split keys

split-help =
    鍵の半分を自分で持つと、こちらの返事はあなた以外には役に立ちません。
    自分のマシンで秘密の半分を作ります（npubbotのウェブページでもできます）。
    npubbot split new { -example }
    表示された行を送ってください。
    split HALF { -example }
    こちらの部分をお返しします。秘密ではありません。あなたの半分と合わせると鍵になります。
    npubbot combine
bad-point = その公開用の半分は使えません：{ $reason }。
no-point = 公開用の半分が見つかりません。
send-a-point =
    何も始めていません。次のように送ってください。
    split HALF { -example }
    作り方：
    { command-help } { command-split }
point-not-a-point = 公開用の半分は、02か03で始まる66桁の16進数か、npubです
point-not-on-curve = この数字は公開用の半分ではありません。欠けているか間違っているので、全体をコピーしてください
point-damaged = npubのチェックサムが合いません。欠けているか間違っているので、全体をコピーしてください
point-alone =
    半分はありますが、探す文字がありません。何も始めていません。
    1つのメッセージで両方を送ってください。
    split HALF { -example }
    しくみ：
    { command-help } { command-split }
half-used =
    { $use ->
        [open] この半分、またはそれと関係のある半分では、すでに探しています。
       *[spent] この半分、またはそれと関係のある半分は、すでに鍵に使われました。
    }
    1つの半分から作った2つの鍵は、片方を知るともう片方もわかってしまいます。
    鍵ごとに新しい半分を作ってください。
    npubbot split new

## Stop, start, delete, language

stopped =
    これからは何も送りません。
    また受け取るには、次のように送ってください。
    { command-start }
stopped-cancelled =
    進行中のジョブ{ $open }件をキャンセルしました。これからは何も送りません。
    また受け取るには、次のように送ってください。
    { command-start }
started =
    またお使いいただけます。文字を送ってください。
    { -example }
    または：
    { command-help }
forgotten =
    { $open ->
        [0] あなたのジョブとメッセージを、もう一度送れる鍵も含めて記録から消しました。
       *[other] あなたのジョブ（進行中のものはキャンセルしました）とメッセージを、もう一度送れる鍵も含めて記録から消しました。
    }
    メッセージの番号は9日以内に消えます。それまでは、古い写しにもう一度返事をしないために残ります。
    この24時間に始めたジョブの時刻は、1日の上限のためにその間だけ残ります。
language-set =
    これからは日本語で返事をします。
    文字を送ってください。
    { -example }
    または：
    { command-help }
languages = 次の言語で返事ができます。どれかを送ってください。
choose-language = lang { $code }（{ $name }）

## Results and notices

found-prefix = このnpubはnpub1{ $pattern }で始まります
found-met = このnpubには { $met } があり、{ $pattern } に当てはまります
found-word = このnpubは npub1{ $met } で始まり、「{ $word }」と読めます
found-fits = このnpubは { $pattern } に当てはまります
found-after = ジョブ{ $job }が終わりました（{ $waited }）。{ $fits }。
found-best = ジョブ{ $job }が終わりました。見た中で最も珍しい鍵です。{ $fits }。{ $amount }個に1個の鍵です。
key-found =
    { $heading }
    { $npub }
    次のメッセージは秘密鍵だけです。そのまま全体をコピーしてください。
    これを持つ人がこのアカウントの持ち主になります。大切に保管し、誰にも見せないでください。
    この鍵は運営者のマシンで作られました。運営者を信じられる範囲でお使いください。
    2つのメッセージをもう一度受け取るには、次のように送ってください。
    { command-resend }
tweak-found =
    { $heading }
    { $npub }
    次のメッセージはこちらの部分だけです。そのまま全体をコピーしてください。秘密ではありません。
    あなたの半分と合わせると鍵になります。
    npubbot combine
    その半分はもう使いました。次の鍵には新しい半分を作ってください。
tips = 気に入ったら、運営者へのチップはこちらへ: { $address }
apology =
    このメッセージの処理中に、こちらで問題が起きました。何も始めていません。
    運営者のログに残っています。別の言い方で送るか、次のように送ってください。
    { command-help }
late =
    ジョブ{ $job }は予想より長くかかっています（経過{ $waited }）。
    運が悪いか、今日は遅いようです。あと{ $left }まで続けます。何もしなくてかまいません。
    やめるには、次のように送ってください。
    { command-cancel } { $number }
lost =
    ジョブ{ $job }を打ち切りました。バックアップから復元されたため、あなたの半分はすでに使われたかもしれません。1つの半分から作った2つの鍵は、互いを明かしてしまいます。
    新しい半分を作り、表示された行を送ってください：npubbot split new
given-up =
    ジョブ{ $job }を打ち切りました。{ $span }探しましたが、{ $patterns ->
        [1] 見つかりませんでした
       *[other] { $patterns }個のどれも見つかりませんでした
    }。
    もっと短いものか、同じものをもう一度送ってください。
