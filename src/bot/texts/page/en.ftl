# The texts of the page in English. The other tables in this folder have the same texts;
# docs/developers/translating.md says how to write one. Numbers, times, meanings of patterns and
# their errors are those of the bot, in the folder above.

text-direction = ltr
sentence = { $text }.

## The first screen

page-title = npubbot: choose your npub
page-title-found = npubbot: your key is here
heading = A Nostr key with your letters
lead-nostr =
    Nostr is a network for posts and messages that belongs to nobody. Your npub is your public name there, and your
    nsec is the secret key to it.
lead-half = Half of the secret is made in this browser and stays here. So nobody but you can ever have the key.
language = Language
ask-title = What should your npub start with?
characters-help = Small letters and digits. The characters 1, b, i and o do not exist in an npub.
more-patterns = More patterns
several-help = Write several, with spaces between them, to get whichever is found first.
find-key = Find my key
searching-bot = Looking for the bot…
bot-found = You ask { $bot }, { $npub }…, through { $relays }.
bot-asleep = { $bot } is offline now. You can ask: it answers when it is back. Keep your request until then.
relays-dead = None of the relays in this link can be reached. Check your connection and try again, or get a new link.
bot-unknown = The bot is not found yet. Wait a moment, or try again.
the-bot = the bot
try-again = Try again
open-file = Open a request you saved as a file
use = Use { $pattern }
spellings = Other spellings to tap

rarity-later = The bot says how rare that is and how long it takes.
time-later = The bot says how long that takes.
best-time = The bot searches for { $span } and says how rare the key is.
too-long = That would take about { $span }, and this bot searches for { $limit } at most. Shorten it.
too-long-fits = That would take about { $span }, and this bot searches for { $limit } at most. This fits:
no-pattern = Write the characters that should follow npub1, for example m0ctane

## Links

link-nsec = This is a secret key (nsec). Show it to nobody, and paste it nowhere. To ask a bot, paste its npub.
link-none = No bot is named here. Paste the bot’s npub1… or its link.
link-damaged = The bot’s npub is damaged: a part is missing or mistyped. Copy the whole link again.
address-nsec = There was a secret key (nsec) in this address, and others may have seen it. Stop using that key, and make a new one.
no-bot-title = Let this page ask for you
bot-label = The bot’s npub or link
bot-help = Then the page connects to the bot’s relays, and to nothing else.
open = Open

## Waiting

request-title = Your request: { $patterns }
step-wait = Waiting for the bot
step-search = Searching
step-found = Found
step-done = : done
step-now = : now
chance-key = Chance that the key is found by now
chance-work = Chance that the work is done by now
part-over = Part of the time that is over
connecting = Connecting…
relays-gone = No relay can be reached now. The page goes on trying; check your connection.
sending = Sending your request…
waiting = Waiting for the bot’s answer…
no-answer = The bot has not answered yet. It may be busy or offline. Keep your request below, and come back later.
searching = The bot is searching (job { $job }).
refused = Nothing was started. Read what the bot says, and ask for something else.
stopping = The bot is told to stop…
stopped = Stopped. You can ask for something else.
working = Many people ask now, so the bot wants some work first. Your browser does it.
worked = The work is done. Waiting for the bot’s answer…
work-percent = { $percent } of 100 are done, about { $span } more.
work-percent-only = { $percent } of 100 are done.
so-far = { $elapsed } so far.
so-far-of = { $elapsed } so far of { $time }.
so-far-expected = { $elapsed } so far, about { $time } expected.
so-far-late = { $elapsed } so far, about { $time } expected. It is taking long, and can come at any moment.
bot-says = What the bot says
stop-search = Stop the search
ask-again = Ask for something else

## Keeping a request

keep-title = Want to close this page meanwhile?
keep-why = Your half of the secret is only in this tab. Keep it under a passphrase, and you can come back for the key.
keep-passphrase = A passphrase you will remember
keep-here = Keep in this browser
keep-file = Save as a file
is-kept = This request is kept. You can close the page and come back.
kept-here = Kept in this browser. You can close the page, and come back with your passphrase.
kept-file = Saved, unless your browser asked you and you said no. You can close the page, and come back with your passphrase.
kept-title = Go on where you were
kept-requests = Your saved requests
kept-asked = asked { $when }
saved-file = A saved file
its-passphrase = Its passphrase
go-on = Go on
delete-kept = Delete this request
delete-sure = Delete this request? Without it, the bot’s answer to it is worth nothing.
no-passphrase = There is no passphrase yet. Write one.
wrong-passphrase = Wrong passphrase. Try again.
file-damaged = This file is damaged, or not one of this page. Choose another one.
file-large = This file is too large to be one of this page. Choose another one.
file-none = No file is chosen yet.
kept-many = This browser keeps { $count } requests already. Save this one as a file.
keeps-nothing = This browser keeps nothing for this page. Save a file instead.
no-request = This is not a saved request, or it is damaged.
slow = Working: this is slow on purpose.
no-memory = It did not work, perhaps for lack of memory. Close other tabs and try again.
went-wrong = Something went wrong. Please reload the page.

## The key

done-title = Your key is here
npub-label = Public: your npub
nsec-label = Secret: your nsec
nsec-warning = Save it in your password manager now. Whoever has it is you, and nobody can give it back to you if it is lost.
save-nsec = Save in the password manager
copy = Copy
copy-npub = Copy
    .aria-label = Copy your npub
copy-nsec = Copy
    .aria-label = Copy your nsec
copy-ncryptsec = Copy
    .aria-label = Copy your ncryptsec
show = Show
hide = Hide
print = Print a sheet
print-title = Nostr key: keep this sheet where nobody else sees it
copied = Copied.
copy-selected = Your browser does not let the page copy. The text is selected: copy it yourself.
copy-shown = Your browser does not let the page copy. Show the text and copy it yourself.
save-asked = Your browser was asked to save it. If it did not offer to, use Copy.
save-refused = Your browser does not save it for this page. Use Copy, and paste it into your password manager.
qr-note = The same as a QR code, for another device of yours. Whoever photographs it has your key.
qr-nsec = QR code of your nsec
qr-message = QR code of the message
ncryptsec-title = With a password (ncryptsec)
ncryptsec-lead = For apps that take an encrypted key. Without the password it is worth nothing, to you either.
password = Password
no-password = There is no password yet. Write one.
encrypt = Encrypt
encrypted = Encrypted.
ncryptsec-label = Your ncryptsec
apps-title = Use it in an app
apps-lead = Open one, choose “log in”, and paste your nsec:
app-primal = Primal: phones and the web
app-amethyst = Amethyst: Android; it takes an ncryptsec too
app-damus = Damus: iPhone
app-coracle = Coracle: the web
app-device = The Nostr app on this device
new-account = This is a new account. Followers of an old one do not come along: tell them your new npub.
half-served = Your half has served. Never use it for another key: whoever has one of the two can compute the other.
half-served-twice =
    WARNING: this half has made another key before. Whoever has one of the two can compute the other. Use only one, and
    make a new half for the next key.
other-answer =
    The bot sent another answer to this request before. Two keys of one half betray each other, so this one is refused.
    Ask again.
tab-holds = This tab holds your key until you let it forget, or close it.
forget = I have saved my key: forget everything here
forget-sure = You have not copied, shown or saved your key. Without it nobody can use the npub. Forget it?
forgotten = Forgotten: nothing of this request is left in this browser.
clipboard-has = Your clipboard still has the key.
clear-clipboard = Clear the clipboard
clipboard-cleared = The clipboard is cleared. A clipboard history may still have it.
clipboard-stays = Your browser does not let the page do that. Copy something else.

leave-key = You have not copied, shown or saved your key. Follow the changed address?
leave-half = Your half is not kept. The answer to it would be lost. Follow the changed address?
again-sure = You have not kept this request. The bot is told to stop, and its answer would be lost. Go on?

## By hand

manual-title = By hand: offline, with your own Nostr account
manual-lead =
    Make the half here, send the message yourself, and come back with the bot’s answer. This works offline: save this
    page and open it without a network if you like.
manual-ask = Ask
manual-make = Make my half
half-title = Keep your half
half-warning =
    Secret, and needed later. The search may take days, and this page forgets the half when it closes. Without it the
    answer is worth nothing. It serves for one request only: make a new one for the next.
half-label = Your half
copy-half = Copy
    .aria-label = Copy your half
half-passphrase = Or as a file, under a passphrase
half-saved = Saved, unless your browser asked you and you said no.
half-kept = I have kept my half in a safe place
half-replace = You have not kept the half made before. Replace it? An answer to it would be lost.
send-title = Send this to the bot
send-lead = As a direct message, from any Nostr account. Nothing in it is secret.
message-label = Message
copy-message = Copy
    .aria-label = Copy the message
send-then = The bot answers with a text that starts with ntweak1. Come back with it to step 2.
work-title = A bot asks for work
work-answer = The bot’s answer
work-help =
    Paste the whole answer. Your browser does the work, and you send the line that it makes in one message with your
    request. Keep this page open; it works without a connection.
work-line = The line to send
copy-line = Copy the line
work-do = Do the work
work-stop = Stop
work-stopped = Stopped.
work-added = Done. Send the line in one message with your request. It counts once, today.
work-none = There is no line “npubbot work …” with a number up to { $most } in it. Paste the bot’s whole answer.
manual-finish = Finish
half-in-file = My half is in a file
the-file = The file
file-passphrase = The file’s passphrase
open-file-button = Open the file
half-opened = Opened. Now paste the bot’s answer.
answer-label = The bot’s answer
asked-for = The pattern you asked for (checked if given)
make-key = Make my key

## Texts that are pasted

text-missing =
    { $kind ->
        [nhalf] Your half is missing. Paste the text that starts with nhalf1.
       *[ntweak] The bot’s answer is missing. Paste the text that starts with ntweak1.
    }
text-damaged =
    { $kind ->
        [nhalf] This half is damaged
       *[ntweak] This answer is damaged
    }: a part is missing or mistyped. Copy the whole { $kind }1… text again.
text-version = This { $kind }1… text has version { $version }, and this page reads version 1. Get a newer copy of the page.
text-several = There are { $count } texts { $kind }1… in it. Paste one.
text-other =
    { $other ->
        [nsec] This is a secret key (nsec). Paste it nowhere you do not have to.
        [ncryptsec] This is an encrypted secret key (ncryptsec).
        [npub] This is a public key (npub).
        [nprofile] This is a profile (nprofile).
        [nhalf] This is your half, which is secret: never send it to anyone.
        [ntweak] This is the bot’s answer.
       *[none] This is another text.
    } What belongs here starts with { $kind }1.
half-no-key = This half holds a number that is no key. Make a new half and ask again.
tweak-damaged = This answer holds a number that cannot be. Ask the bot again.
tweak-other-half = This answer was made for another half. Paste the half that you asked with.
tweak-cancels = This answer and this half cancel out, which leaves no key. Make a new half and ask again.
tweak-unfit =
    The key this makes is { $npub }, which does not fit { $patterns }. Check the pattern you asked for. If it is right,
    the bot answered wrongly: make a new half and ask again.

## About the page

about = About this page
connects-nothing = No bot is named in its address, so it connects to nothing: its content security policy forbids it.
connects-to = It connects to { $relays }, and to nothing else: its content security policy allows no more.
about-file = It is one file. Its SHA-256, as your browser has read it:
about-same = The bot’s signed announcement names the same page.
about-other = The bot’s signed announcement names another page: { $hash }. If you did not choose this one yourself, do not use it.
about-hash =
    A page that lies can show any number. Before you trust it with much, save the file, let sha256sum tell, and compare
    with the release notes of npubbot.
about-install = To have it as an app, choose “Install” or “Add to home screen” in the browser’s menu.
