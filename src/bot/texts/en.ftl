# The texts of the bot in English, and the words it understands. The other tables have the same
# messages; docs/developers/translating.md says how to write one.
#
# Plain text without markup: clients show it as it is. One idea a line; what the asker may type
# next stands on a line of its own.

language-name = English
-example = m0ctane

## Words to type. Each is understood, and shown in the messages below.

command-help = help
command-status = status
command-cancel = cancel
command-resend = resend
command-stop = stop
command-start = start
command-delete = delete
command-split = split
command-find = find
command-explain = explain
command-language = lang

## Numbers and spans of time

decimal = .
# A name for each thousand (thousands), or for each ten thousand (myriads).
number-names = thousands
# $number is the text of $quantity, by which a language may choose between singular and plural.
amount =
    { $unit ->
        [thousand] { $number } thousand
        [million] { $number } million
        [billion] { $number } billion
        [trillion] { $number } trillion
        [quadrillion] { $number } quadrillion
        [quintillion] { $number } quintillion
       *[none] { $quantity ->
           *[other] { $number }
        }
    }
odds = About 1 key in { $amount } fits.
# $unit is that of the amount: "80 millions de clés", "80 mille clés".
speed =
    { $unit ->
       *[other] { $amount } keys a second
    }
span =
    { $unit ->
        [seconds] { $count } { $count ->
            [one] second
           *[other] seconds
        }
        [minutes] { $count } min
        [hours] { $count } h
        [days] { $count } { $count ->
            [one] day
           *[other] days
        }
        [years] { $count } { $count ->
            [one] year
           *[other] years
        }
       *[instant] less than a second
    }
span-hours-minutes = { $hours } h { $minutes } min
# A span whose unit was just named: "about 7 min, rarely more than 21".
span-again =
    { $unit ->
       *[other] { $count }
    }
takes-exactly = That takes { $mean }.
takes-little = That takes { $mean }, rarely more than { $most }.
takes-about = That takes about { $mean }, rarely more than { $most }.

## Lists

comma = { ", " }
more = { $count } more
list-and-more = { $list } and { $count } more
any-of = { $list } or { $last }, whichever is found first

## Acceptance

# Bots of other operators know an acceptance in English by the words of `accepted` before its
# patterns: they stay.
accepted = Job { $job }: searching for { $patterns }.
no-speed-yet = I do not know my speed yet. Send { command-status } later for the expected time.
queue = Others are before you: about { $span } until it is your turn.
rests-until = My devices rest until { $time } and search again then.
rests-now = My devices rest now. They search again as soon as they can.
at-your-point = The search uses your own half.
place-in-line = Its place in line is { $place }.
tweak-comes = My part comes in this chat. It is no secret: only with your half does it make the key.
key-comes = The key comes in this chat.
best-likely = It is probably as rare as 1 key in { $amount }, or rarer.
best-takes = It comes in about { $span }.
expensive =
    You can keep half of such a key yourself. How:
    { command-help } { command-split }
to-stop =
    To stop, send:
    { command-cancel } { $number }

## Help and status

help =
    I find Nostr keys whose npub starts with characters you choose.
    Send the characters that come after npub1:
    { -example }
    Send several, and the first one found ends the job:
    cat dad
    Other messages I understand:
    { command-status }: your jobs
    { command-cancel }: stop them (or: { command-cancel } 12)
    { command-resend }: the last key again
    { command-explain }: what else I can search for, such as look-alikes
    surprise: a key with a word at its start, to see it work
    { command-find } gm: search for a word that I would take for something else
    { command-stop }: I write nothing more to you
    { command-delete }: I forget you
    I make the key on my operator's machine. You can keep half of it yourself. How:
    { command-help } { command-split }
at-work = Open jobs of all askers: { $jobs }. I try { $speed }.
at-work-unmeasured = Open jobs of all askers: { $jobs }. I do not know my speed yet.
job-line = Job { $job }: { $patterns }, waited { $waited }.
job-line-expected =
    Job { $job }: { $patterns }, waited { $waited } of about { $mean } expected (chance so far { $chance } %).
job-line-best = Job { $job }: { $best }, waited { $waited }, so far as rare as 1 key in { $amount }.
and-more-jobs = And { $count } more.
no-jobs =
    You have no open job. To start one, send a prefix:
    { -example }
kept-keys =
    Keys I can send again: { $jobs }. Send:
    { command-resend }

## Cancelling, and sending again

cancelled =
    { $count ->
        [one] Job { $jobs } is cancelled.
       *[other] Jobs { $jobs } are cancelled.
    }
no-such-job = You have no open job { $job }.
no-open-job = You have no open job to cancel.
start-one =
    To start one, send a prefix:
    { -example }
cancel-one =
    Yours are { $jobs }. To cancel one, send:
    { command-cancel } { $number }
sent-again =
    The key of job { $job } is on its way again.
    It is the same message. A client that has it already shows it further up.
no-such-key = I keep no key of a job { $job } of yours.
no-key = I keep no key of yours.
resend-later = Once a job is done, { command-resend } repeats its message.
resend-one =
    I can send { $jobs } again. Send:
    { command-resend } { $number }

## What is not understood

find-it = { command-find } { $prefix }
bad-word = { $word }: { $reason }.
send-only-the-prefix =
    Nothing was started. Send only the prefix:
    { -example }
    or:
    { command-help }
pattern-empty = there is no prefix in it; send 1 to { $most } of the characters { $alphabet }
pattern-too-long =
    { $characters } characters are too many; an npub has { $most } that can be chosen, so send at most that many
pattern-forbidden = “{ $character }” cannot occur in an npub; use the characters { $alphabet }
pattern-forbidden-one = “{ $character }” cannot occur in an npub; “{ $first }” would work
pattern-forbidden-two = “{ $character }” cannot occur in an npub; “{ $first }” or “{ $second }” would work
pattern-impossible = no public key starts like that; its first { $count } characters would be possible
pattern-look-alike = { $reason }; { $pattern } takes any spelling that looks like it
pattern-anything = that fits every key; name at least one character
pattern-class = write several characters for one place as [s5]
pattern-number = after { $keyword } comes a number from { $least } to { $most }, like { $example }
pattern-number-nearest = after { $keyword } comes a number from { $least } to { $most }; the nearest is { $nearest }
pattern-hex = after hex: come 1 to 64 of the digits 0 to 9 and a to f, like hex:c0de
pattern-hex-one = after hex: come 1 to 64 of the digits 0 to 9 and a to f; { $first } would be possible
pattern-hex-too-long = a key has { $most } hexadecimal digits; these are { $digits }, leave out { $more }
pattern-within = @ follows a word between stars and says within how many characters, like *m0ct*@12
pattern-within-one = @ follows a word between stars and says within how many characters; { $first } would be possible
pattern-too-many = with a part elsewhere, at most { $most } characters can be chosen; these are { $characters }
pattern-ending = the seventh character from the end is always q or s
pattern-ending-one = the seventh character from the end is always q or s; { $first } would be possible
pattern-too-intricate = that has too many open places; leave some out
pattern-best = best comes alone and with a time, like best 10m, best zeros 10m or best words 10m; surprise comes alone
unsupported =
    I cannot read that. Nothing was started.
    For the end of a key, put a star before it: { "*m0ct" }. To see all that I understand, send:
    { command-explain }
unsupported-nearest =
    The nearest I can do:
    { command-find } { $nearest }
unsupported-example =
    Send a prefix, for example:
    { -example }
hello =
    Hello! Send me the characters your npub should start with, for example:
    { -example }
search-for-it =
    To search for npub1{ $prefix } itself, send:
    { command-find } { $prefix }
secret-key =
    That is a secret key. Show it to nobody, and stop using it.
    I did not keep it, but it has travelled through relays and clients.
    To get a new key, send only the prefix:
    { -example }
seed-answer = A chosen npub cannot come from seed words (12 or 24 words): its nsec is the backup.
nothing =
    I see no word in your message.
    Send the characters your npub should start with:
    { -example }
    or:
    { command-help }
text-only =
    I read text only, no files.
    Send the characters your npub should start with:
    { -example }
no-groups =
    This message went to several people, and a key is for you alone.
    Ask me in a chat with nobody else.

## Offers and frequent questions

offer-impossible = “{ $character }” cannot occur in an npub. Nothing was started. This looks alike; to search for it, send:
offer-accent = An npub has no accents and no marks inside. Nothing was started. Without them:
offer-script = “{ $character }” is a letter of another script that looks like “{ $latin }”. Nothing was started. With the right one:
offer-unsure = Nothing was started, because I am not sure what you mean. To search for this, send:
offer-uneven = { $easiest } is over 1,000 times easier than the rest, so you would always get that one. Nothing was started. For the rest alone, send:
offer-change =
    Job { $job } goes on, and nothing else was started. To change it, send one after the other:
    { command-cancel } { $number }
show-delete =
    This deletes your jobs and messages here, and the keys I could send again. If you want that, send:
    { command-delete }
show-stop =
    If you want no more messages from me, send:
    { command-stop }
answer-who =
    I am a program that finds Nostr keys whose npub starts as you like. It is npubbot, open source, run by the operator of this npub.
    I write only to people who wrote to me. For no more messages, send:
    { command-stop }
answer-price = It costs nothing: I ask for no payment and take none.
answer-safety =
    Your key is made in the memory of my operator's machine and sent encrypted. Trust it as far as you trust the operator.
    My operator can see your npub and what you asked for. To have that forgotten, send:
    { command-delete }
    You can keep half of the key yourself. How:
    { command-help } { command-split }
answer-import =
    Copy the whole line that begins with nsec1 into your client, where it asks for a private key (log in, nsec). Then delete my message.
    It is a new identity. A key you have cannot be changed: it stays valid, and its followers stay with it.
    To get the last key again, send:
    { command-resend }
thanks-answer = My pleasure! For another key, send a prefix.
chat-answer =
    I only find keys. Send me the characters that your npub should start with:
    { -example }
which-next =
    Which one should it be? Send the whole prefix, for example:
    { -example }
latin-letters =
    An npub has only Latin letters and digits. Write it in those, for example:
    { "~hanako" }
foreign-language = I do not know that language. I answer in { $names }.
other-job =
    Job { $job } goes on as well. To stop that one, send:
    { command-cancel } { $number }
page = There is also a page: { $url }

## Patterns

means = { $pattern }: { $meaning }.
meaning-start = starts with npub1{ $text }
meaning-alike = starts with npub1 and any spelling that looks like “{ $text }”
meaning-middle =
    { $from ->
        [start] has { $text } anywhere after that
       *[npub] has { $text } anywhere after npub1
    }
meaning-within = has { $text } within the first { $count } characters after npub1
meaning-end = ends with { $text } (checksum included)
spelling = any spelling that looks like “{ $text }”
meaning-equal = starts with npub1 and { $count } equal characters
meaning-equal-anywhere = has { $count } equal characters in a row
meaning-hex-start = its public key in hex starts with { $text }
meaning-hex-end = its public key in hex ends with { $text }
meaning-zeros = its public key starts with { $count } zero { $count ->
        [one] bit
       *[other] bits
    }
meaning-words = starts with npub1 and a word of the built-in list, { $count } letters or longer
meaning-best =
    the rarest key seen in { $span } of search, by { $family ->
        [zeros] the zero bits at its start
        [words] the word of the built-in list at its start
       *[any] zero bits, equal characters or a word at its start
    }
open-place = ? is any character
one-of = one of the characters in brackets
looks-alike =
    This looks alike and takes { $span }:
    { command-find } { $pattern }
needs-start = I cannot search for that: too little of it is at the start of a key.
nothing-started = Nothing was started.
too-wide =
    That allows { $asked } different starts of a key, and I take at most { $allowed } a job.
    Nothing was started. Send fewer patterns, or with fewer open places.
too-many-ends =
    Of patterns that say little about the start of a key, I take at most { $allowed } a job. Yours has { $asked }.
    Nothing was started. Send fewer patterns, or with more characters at the start.
too-wide-now =
    I search for so many different starts of keys now that I can take only simple patterns.
    Nothing was started. Try again later, or send a prefix:
    { -example }
explain-find =
    To search for it, send:
    { command-find } { $pattern }
kinds =
    I search for keys by these patterns:
    { -example }: these characters after npub1
    m0?tane: ? is any character
    { "[s5]at0sh" }: one of the characters in brackets
    { "~m0ctane" }: any spelling that looks like it
    =7: seven equal characters
    hex:c0de: the public key in hex
    zeros:24: leading zero bits of the public key
    words:8: a word of the built-in list, 8 letters or longer
    best 10m: the rarest key seen in ten minutes
    surprise: the longest word seen in ten seconds
    To learn what one means and how long it takes, send:
    { command-explain } { "~m0ctane" }

## Limits

too-many-prefixes =
    That is { $asked } words, and I take at most { $allowed } { $allowed ->
        [one] prefix
       *[other] prefixes
    } a job.
    Send the { $allowed } you like best.
already-searching =
    I am searching for exactly that already, as job { $job }.
    To see how it goes, send:
    { command-status }
    To stop it, send:
    { command-cancel } { $number }
result-not-taken =
    A key that I found for you is still here: no relay of yours has taken it. Nothing was started.
    If your relays take messages from me now, send:
    { command-resend }
too-many-not-taken = I keep so many keys whose askers' relays do not take them that I can start nothing for new people. Try again later.
too-many-open =
    You have { $count } open { $count ->
        [one] job
       *[other] jobs
    } ({ $jobs }), and { $allowed } is the limit.
    Wait for one to end, or stop one:
    { command-cancel } { $number }
too-many-today =
    You have started { $allowed } { $allowed ->
        [one] job
       *[other] jobs
    } in the last 24 hours, and that is the limit.
    The next one works in { $span }.
too-hard = That would take about { $span }. I take nothing that takes longer than { $limit }.
too-hard-all = I can take no request at all now. Try again later.
too-hard-up-to =
    Now I take up to { $characters } { $characters ->
        [one] character
       *[other] characters
    }.
best-too-long =
    I search for the rarest key for { $limit } at most. Nothing was started. Send:
    { command-find } { $best }
not-measured =
    I do not know my speed now, so I cannot say how long that takes.
    Up to { $characters } { $characters ->
        [one] character
       *[other] characters
    } work now. For more, try again in a minute.
needs-sealed =
    Your client sent an old kind of message (NIP-04). I work with NIP-17 messages only.
    Ask me from a client that sends them, such as Amethyst, 0xchat, Coracle or Nostur, and let it publish your DM relays.
needs-sealed-page = Or use my page, without a client: { $page }
friends-only = This bot searches for friends of its operator only.
restored =
    I was restored from a backup after you sent this, and may have answered it before.
    If you still want it, send it once more. For a split key, make a new half first.
price =
    Many people ask me for keys now, so this costs a little work of your device: { $bits } bits of proof of work, about { $span } on a phone. Nothing was started.
price-page = My page does the work for you: { $page }
price-command =
    On a computer with npubbot, this command does it:
    { $command }
    Then send your request again, together with the line it prints. Or try again later.
work-alone =
    That is the proof of work. Send it in one message with your request, like:
    { -example }
    work …
paused =
    That is a lot of messages. I answer again at { $time }.
    Your open jobs go on.

## Split keys

split-help =
    Keep half of the key: then my answer is of no use to anybody but you.
    On your machine, make a secret half (or use the web page that comes with npubbot):
    npubbot split new { -example }
    Send me the line it shows:
    { command-split } HALF { -example }
    I answer with my part, which is no secret. Your half and my part make the key:
    npubbot combine
bad-point = I cannot use that public half: { $reason }.
no-point = I see no public half in that.
send-a-point =
    Nothing was started. Send:
    { command-split } HALF { -example }
    How to make one:
    { command-help } { command-split }
point-not-a-point = a public half is 66 hexadecimal digits that start with 02 or 03, or an npub
point-not-on-curve =
    these digits are not a public half, so part of them is missing or mistyped; copy all of it
point-damaged = the npub's checksum is wrong, so part of it is missing or mistyped; copy all of it
point-alone =
    I see your half but no prefix. Nothing was started.
    Send both in one message:
    { command-split } HALF { -example }
    How it works:
    { command-help } { command-split }
half-used =
    { $use ->
        [open] This half, or one related to it, is being searched for already.
       *[spent] This half, or one related to it, has served for a key already.
    }
    Two keys of one half betray each other: whoever has one finds the other.
    Make a new half for each key:
    npubbot split new

## Stop, start, delete, language

stopped =
    I write nothing more to you.
    To hear from me again, send:
    { command-start }
stopped-cancelled =
    { $open ->
        [one] Your open job is cancelled.
       *[other] Your { $open } open jobs are cancelled.
    } I write nothing more to you.
    To hear from me again, send:
    { command-start }
started =
    Here I am again. Send a prefix:
    { -example }
    or:
    { command-help }
forgotten =
    Done: your jobs{ $open ->
        [0] {""}
       *[other] {" "}(open ones are cancelled)
    } and messages are gone from my ledger, with the keys I could have sent again.
    The numbers of your messages go within 9 days; until then they keep old copies from being answered again.
    The times of the jobs you started in the last 24 hours stay for that long: they count for the limit of a day.
language-set =
    I answer in English now.
    Send a prefix:
    { -example }
    or:
    { command-help }
languages = I answer in these languages. Send one of:
choose-language = { command-language } { $code } ({ $name })

## Results and notices

found-prefix = This npub starts with npub1{ $pattern }
found-met = This npub has { $met }, which fits { $pattern }
found-word = This npub starts with npub1{ $met }, which reads “{ $word }”
found-fits = This npub fits { $pattern }
found-after = Job { $job } is done after { $waited }. { $fits }:
found-best = Job { $job } is done: this is the rarest key I saw. { $fits }, as 1 key in { $amount } does:
key-found =
    { $heading }
    { $npub }
    My next message is its secret key and nothing else: copy it whole.
    Whoever has it is this identity. Keep it safe, and show it to nobody.
    It was made on my operator's machine: trust it as far as you trust the operator.
    To get both messages again, send:
    { command-resend }
tweak-found =
    { $heading }
    { $npub }
    My next message is my part and nothing else: copy it whole. It is no secret.
    Your half and it make the key:
    npubbot combine
    Your half has served now. Make a new one for the next key.
tips = If you are glad of it, tips go to my operator: { $address }
apology =
    Something went wrong on my side with this message. Nothing was started.
    My operator's log tells of it. Say it in other words, or send:
    { command-help }
late =
    Job { $job } takes longer than I said: { $waited } so far.
    That is bad luck or a slow day. I go on for { $left } at most; you need do nothing.
    To stop, send:
    { command-cancel } { $number }
lost =
    Job { $job } is given up: I was restored from a backup, and your half may have been used already. Two keys of one half reveal each other.
    Make a new half and send me the line it prints: npubbot split new
given-up =
    Job { $job } is given up: I found none of its { $patterns } { $patterns ->
        [one] prefix
       *[other] prefixes
    } in { $span }.
    Send a shorter one, or the same once more to try again.
