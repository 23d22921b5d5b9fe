"""Writes tests/vectors.json: halves, tweaks and keys by plain integer arithmetic, sharing no code with the page.

python3 tests/vectors.py [seed] > tests/vectors.json
"""

import hashlib
import json
import random
import sys

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)
LAMBDA = 0x5363AD4CC05C30E0A5261C028812645A122E22EA20816678DF02967C1B23BD72
ALPHABET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def add(a, b):
    if a is None or b is None:
        return a or b
    if a[0] == b[0] and (a[1] + b[1]) % P == 0:
        return None
    if a == b:
        slope = 3 * a[0] * a[0] * pow(2 * a[1], -1, P) % P
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P) % P
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def multiply(scalar):
    total, power = None, G
    while scalar:
        if scalar & 1:
            total = add(total, power)
        power = add(power, power)
        scalar >>= 1
    return total


def compressed(point):
    return bytes([2 + point[1] % 2]) + point[0].to_bytes(32, "big")


def polymod(values):
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for i, term in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            if top >> i & 1:
                check ^= term
    return check


def bech32(kind, payload):
    bits = "".join(f"{byte:08b}" for byte in payload)
    bits += "0" * (-len(bits) % 5)
    words = [int(bits[i : i + 5], 2) for i in range(0, len(bits), 5)]
    spread = [ord(c) >> 5 for c in kind] + [0] + [ord(c) & 31 for c in kind]
    check = polymod(spread + words + [0] * 6) ^ 1
    words += [check >> 5 * (5 - i) & 31 for i in range(6)]
    return f"{kind}1" + "".join(ALPHABET[word] for word in words)


def tweak_text(rotation, offset, point, version=1):
    fingerprint = hashlib.sha256(point).digest()[:8]
    return bech32("ntweak", bytes([version, rotation]) + offset.to_bytes(32, "big") + fingerprint)


def vector(half, offset, rotation, negated):
    point = compressed(multiply(half))
    used = N - half if negated else half
    total = (used + offset) % N
    made = {
        "half": bech32("nhalf", b"\x01" + half.to_bytes(32, "big")),
        "point": point.hex(),
        "tweak": tweak_text(rotation, offset, compressed(multiply(used))),
        "rotation": rotation,
        "offset": f"{offset:064x}",
        "negated": negated,
    }
    if total:
        key = pow(LAMBDA, rotation, N) * total % N
        made["nsec"] = bech32("nsec", key.to_bytes(32, "big"))
        made["npub"] = bech32("npub", multiply(key)[0].to_bytes(32, "big"))
    return made


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20251121
    rng = random.Random(seed)
    edge_halves = [1, 2, N - 2, N - 1, (N - 1) // 2, (N + 1) // 2]
    edge_offsets = [0, 1, N - 2, N - 1]
    vectors = [
        vector(half, offset, rotation, negated)
        for half in edge_halves
        for offset in edge_offsets
        for rotation in range(3)
        for negated in (False, True)
    ]
    for _ in range(60):
        half, offset = rng.randrange(1, N), rng.randrange(N)
        vectors.append(vector(half, offset, rng.randrange(3), rng.random() < 0.5))
    half = rng.randrange(1, N)
    vectors.append(vector(half, N - half, 1, False))  # cancels out
    point = compressed(multiply(half))
    bad = {
        "half": bech32("nhalf", b"\x01" + half.to_bytes(32, "big")),
        "version 2": tweak_text(0, 5, point, 2),
        "version 0": tweak_text(0, 5, point, 0),
        "rotation 3": tweak_text(3, 5, point),
        "rotation 255": tweak_text(255, 5, point),
        "offset n": tweak_text(0, N, point),
        "offset 2^256-1": tweak_text(0, 2**256 - 1, point),
        "other point": tweak_text(0, 5, compressed(multiply(rng.randrange(1, N)))),
        "short": bech32("ntweak", b"\x01" + bytes(40)),
        "long": bech32("ntweak", b"\x01" + bytes(42)),
        "half 0": bech32("nhalf", b"\x01" + bytes(32)),
        "half n": bech32("nhalf", b"\x01" + N.to_bytes(32, "big")),
        "half version 2": bech32("nhalf", b"\x02" + half.to_bytes(32, "big")),
    }
    json.dump({"seed": seed, "vectors": vectors, "bad": bad}, sys.stdout, indent=1)
    print()


main()
