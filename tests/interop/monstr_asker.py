"""An asker with monstr."""
import asyncio
import json
import os
import sys
from datetime import datetime

from monstr.client.client import Client
from monstr.encrypt import Keys
from monstr.event.event import Event
from monstr.giftwrap import GiftWrap
from monstr.signing.signing import BasicKeySigner

RELAY, BOT, REQUEST = os.environ["RELAY"], os.environ["BOT"], os.environ["REQUEST"]
SUBJECT = os.environ.get("SUBJECT")


def judge(rumors, request_id, asker):
    """Prints what was seen, never the nsec, and says whether all came as it should."""

    def threaded(rumor):
        tags = [tag[:2] for tag in rumor.tags.tags]
        wanted = [["e", request_id], ["p", asker]] + ([["subject", SUBJECT]] if SUBJECT else [])
        return rumor.kind == 14 and rumor.pub_key == BOT and all(tag in tags for tag in wanted)

    acceptance = [rumor for rumor in rumors if "searching for" in rumor.content]
    nsecs = [rumor.content for rumor in rumors if rumor.content.startswith("nsec1")]
    npub = Keys(nsecs[0]).public_key_bech32() if nsecs else ""
    seen = {
        "client": "monstr",
        "accepted": bool(acceptance),
        "threaded": all(threaded(rumor) for rumor in rumors),
        "messages": len(rumors),
        "key_fits": npub.startswith("npub1" + REQUEST),
        "npub_named": bool(npub) and any(npub in rumor.content for rumor in rumors),
    }
    print(json.dumps(seen), flush=True)
    return all(seen[part] for part in ("accepted", "threaded", "key_fits", "npub_named"))


async def main():
    keys = Keys()
    signer = BasicKeySigner(keys)
    gift_wrap = GiftWrap(signer)
    me = keys.public_key_hex()
    over = asyncio.Event()
    rumors = {}

    def on_auth(client, challenge):
        asyncio.create_task(client.auth(keys, challenge))

    async def open_wrap(event):
        rumor = await gift_wrap.unwrap(event)
        rumors[rumor.id] = rumor
        if len(rumors) >= 3 and any(rumor.content.startswith("nsec1") for rumor in rumors.values()):
            over.set()

    def on_event(client, sub_id, event):
        asyncio.create_task(open_wrap(event))

    async with Client(RELAY, on_auth=on_auth) as client:
        for kind, tag in ((10050, "relay"), (10002, "r")):
            event = Event(kind=kind, content="", tags=[[tag, RELAY]], pub_key=me)
            event.sign(keys.private_key_hex())
            client.publish(event)
        # The bot may still be starting.
        while not (lists := await client.query({"kinds": [10050], "authors": [BOT]})):
            await asyncio.sleep(0.2)
        bot_relays = [tag[1] for tag in lists[0].tags.tags if tag[0] == "relay"]
        client.subscribe("inbox", handlers=on_event, filters={"kinds": [1059], "#p": [me]})
        tags = [["p", BOT]] + ([["subject", SUBJECT]] if SUBJECT else [])
        request = Event(kind=14, content=REQUEST, tags=tags, pub_key=me, created_at=datetime.now())
        wrap, _ = await gift_wrap.wrap(request, BOT)
        if bot_relays[0].rstrip("/") == RELAY.rstrip("/"):
            client.publish(wrap)
        else:
            async with Client(bot_relays[0], on_auth=on_auth) as other:
                other.publish(wrap)
        await asyncio.wait_for(over.wait(), 60)
    return judge(list(rumors.values()), request.id, me)


sys.exit(0 if asyncio.run(main()) else 1)
