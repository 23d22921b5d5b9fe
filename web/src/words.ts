// The words of `words:8`, as in `miner/src/pattern/words/`. A test compares them.

export const ENGLISH =
  'able acid aged also aqua arch area army asset atom aunt aura away axle baby back bake ball band bank bark ' +
  'barn base bath bead beam bean bear beat beef bell belt bend best bird bitcoin bite block blue boat body ' +
  'bold bolt bone book boot born boss both bowl brave bread breeze brick bridge bright bring broad bronze ' +
  'brook brown brush bubble build bull bunny bush butter cafe cake call calm camel camera camp candle canvas ' +
  'canyon card care carpet cash castle cave cedar cell cent chain chair chalk champ change chant chaos charm ' +
  'chase cheer cheese chef cherry chess chest chief child chill chime choice city clam clan clap clay clean ' +
  'clear clever cliff climb clock cloud clover club coach coal coast coat cobra code coffee coin cold comet ' +
  'compass cool copper coral corn cosmos cotton country courage cozy crab craft crane crazy cream creek crew ' +
  'crisp crow crown crypto crystal cube cypher dance dare dark dash data dawn dear deep deer delta diamond ' +
  'dice digital dingo diver dodge dolphin donkey door dove down dragon dragonfly drama draw dream drift drink ' +
  'drum duck dune dust eagle early earth ease east easy echo edge eight elder elegant ember emerald empty ' +
  'energy epic equal escape even ever every exact fable face fact fade fair fairy faith falcon fame family ' +
  'fancy farm fast fate fawn feast feather fern ferry field fiery fifty film finch fire firefly fish five flag ' +
  'flame flash fleet flight float flock flood flower flute focus foggy forest forge fort fortune fossil found ' +
  'fountain frame freedom fresh friend frog frost fruit full funny future galaxy game garden garlic gate gecko ' +
  'geese genius gentle ghost giant gift ginger giraffe glacier glad glass gleam glide globe glory glow goat ' +
  'gold golden good goose grace grain grand grape grass gravel gray great green grove grow guard guest guitar ' +
  'gulf hammer hand happy harbor hare harp haste hawk hazel heart heat heaven hedge hello helm herb hero heron ' +
  'hidden high hill hippo holiday holly home honest honey honor hope horizon horse hotel house human humble ' +
  'hunter husky hymn icon ideal igloo image indigo infinity inner iris iron island ivory jackal jade jaguar ' +
  'jasmine jazz jelly jewel join joke jolly judge juice jump jungle juniper just karma kayak keen keep kernel ' +
  'kettle kind king kite kitten kiwi knight knot koala label lace ladder lady lagoon lake lamb lamp land ' +
  'lantern large laser last laugh launch laurel lava lavender lawn layer leader leaf learn ledger legend lemon ' +
  'lemur letter level liberty life light lightning lilac lily lime line lion liquid little lizard llama local ' +
  'logic long lotus love loyal lucky lunar lunch lynx lyric machine magic magma magnet magnolia maker mammoth ' +
  'mango maple marble march mask master meadow melody melon memory mercury merry message metal meteor middle ' +
  'midnight mild milk mind miner mineral mint mirror mist modern moment money monkey month moon moose morning ' +
  'moss mother motion mountain mouse museum music mustang mystery myth name narrow nature near nebula nectar ' +
  'nest never night ninja noble node nonce north nostr nova number nurse nymph oasis ocean ocelot octave olive ' +
  'omega onion open opera optic oracle orange orbit orca orchid otter oxygen oyster palace palm panda panther ' +
  'paper parade park parrot past path patrol peace peach peak peanut pearl pebble pelican pencil penguin ' +
  'pepper perfect petal phantom phoenix photon piano picnic pilot pine pink pioneer pirate pixel pizza plain ' +
  'planet plant plasma platinum play plaza plum pocket poem poet polar polite pond pony poppy portal potato ' +
  'power prairie present pretty pride prime prince prism private proof proud public pulse pumpkin pure purple ' +
  'puzzle python quail quality quartz queen quest quick quiet quilt rabbit raccoon radar radio rain rainbow ' +
  'ranger rapid raven ready real rebel reef relay reply rescue rhyme ribbon rice rich riddle river road robin ' +
  'robot rocket root rose round royal ruby rural rustic sable safe saga sage sail salmon salt sand sapphire ' +
  'satellite satoshi sats saturn scale scarlet school science scout seal secret secure seed send sense sequoia ' +
  'seven shade shadow shark sharp sheep shell shelter shine ship short signal silent silk silver simple singer ' +
  'skill sleep slow small smart smile smoke snail snake snow snowflake soft solar solid solo song sonic soul ' +
  'south sovereign space spark sparrow special speed sphere spice spider spirit spring sprint square squirrel ' +
  'stable star starfish start state steam steel stellar step stone stork storm story straw stream street ' +
  'strong student sugar summer summit sunday sunflower sunlight sunny sunset super surf swallow swamp swan ' +
  'sweet swift symbol system tale talent tango taurus teal team temple tender tent terra thank thunder tiger ' +
  'time tiny titan toast today token topaz torch tower town trade trail train travel treasure tree trek tribe ' +
  'trick trust truth tulip tundra turtle twelve twin twist ultra umbrella uncle unicorn unity universe urban ' +
  'useful valley value vanilla vault vector velvet venture venus verse vessel victory view village vine ' +
  'vintage violet violin virtue vision vivid voice volcano voyage wagon wallet walnut walrus wander warm water ' +
  'wave wealth weasel west whale wheat wheel whisper white wild willow wind window wine winner winter wise ' +
  'wizard wolf wonder wood world yacht year yellow yeti yoga young youth zebra zenith zephyr zero zest zodiac ' +
  'zone';

export const JAPANESE =
  'aisatsu akari anzen aoba aozora arashi arigato asahi ashita atama atarashi bansai banzai basho bento bonsai ' +
  'budo bushi byakko chiisai chikara chizu daichi daifuku daiku daruma densetsu densha doragon edamame eien ' +
  'ekiben engawa enkan fude fuji fukuro furusato fusen futari fuyu gaijin ganbare genki geta gohan gyoza ' +
  'hagane haiku hakken hana hanabi hanami hane harakiri haru hashi hayabusa hayai heiwa hibiki hikari himawari ' +
  'himitsu hinata hinode hiragana hiroba hisui hitotsu hoshi hotaru ichiban ikebana inari inazuma inochi ' +
  'isshun iwashi izakaya jinja jiyu judo kabuki kaede kagami kage kaiju kaisha kaji kaki kame kami kaminari ' +
  'kampai kanji karasu karate kasumi katana kaze kazoku kenjutsu kibo kiku kimono kinako kirin kitsune kizuna ' +
  'kodama kodomo koinobori kokoro komorebi kotoba kujira kuma kumo kuroi kusa kyoto maguro maiko makoto mamoru ' +
  'manga matcha matsu matsuri megami midori mikan minato minori mirai mitsu miyako mizu mochi momiji momo mori ' +
  'mukashi murasaki musashi nagare nakama namae nami nanami naruto natsu natsume neko nezumi nigiri nihon niji ' +
  'nippon nori ocha odori ohayo okami omamori onigiri origami otaku oyasumi raijin rakuen ramen ringo ronin ' +
  'ryoko ryuu sakana sake sakura samurai sanpo sashimi sasuke sayonara seika seishun sekai senpai sensei sensu ' +
  'shamisen shiawase shika shima shinobi shinrin shiro shizen shizuka shogun shoyu soba sora subarashi sudoku ' +
  'sugoi sumire sumo sushi suzaku suzu suzume tabi taifu taiko taiyo takara takumi tama tanpopo tanuki tatami ' +
  'temaki tempura tengu tenki tensai tenshi tofu tomodachi tonari tora tori toshi tsubaki tsubasa tsuki ' +
  'tsukimi tsunami tsuru tsuyu udon ukiyo umami umeboshi unagi usagi utsukushi wabisabi wagashi wakaba wasabi ' +
  'washi yakitori yakusoku yama yamato yasai yasashi yatai yokai yoroshiku yozora yuki yume yureru yuzu zazen ' +
  'zenbu zori';
