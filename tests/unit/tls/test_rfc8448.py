"""The simple handshake of RFC 8448, section 3, whose secrets and records are printed there.

The 679 bytes of the server's handshake are left out: they are a hole in what is heard.
"""

from __future__ import annotations

import pytest

from kwire.tls import Decryptor, KeyLog, Verdict

RANDOM = "cb34ecb1e78163ba1c38c6dacb196a6dffa21a8d9912ec18a2ef6283024dece7"
SECRETS = {
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET": "b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET": "b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38",
    "CLIENT_TRAFFIC_SECRET_0": "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5",
    "SERVER_TRAFFIC_SECRET_0": "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643",
}
CLIENT_HELLO = bytes.fromhex(
    "16030100c4010000c00303cb34ecb1e78163ba1c38c6dacb196a6dffa21a8d9912ec18a2ef6283024dece70000061301130313020100"
    "00910000000b0009000006736572766572ff01000100000a00140012001d001700180019010001010102010301040023000000330026"
    "0024001d002099381de560e4bd43d23d8e435a7dbafeb3c06e51c13cae4d5413691e529aaf2c002b0003020304000d0020001e040305"
    "030603020308040805080604010501060102010402050206020202002d00020101001c00024001"
)
SERVER_HELLO = bytes.fromhex(
    "160303005a020000560303a6af06a4121860dc5e6e60249cd34c95930c8ac5cb1434dac155772ed3e2692800130100002e0033002400"
    "1d0020c9828876112095fe66762bdbf7c672e156d6cc253b833df1dd69b1b04e751f0f002b00020304"
)
SERVER_FLIGHT = 679
CLIENT_FINISHED = bytes.fromhex(
    "170303003575ec4dc238cce60b298044a71e219c56cc77b0517fe9b93c7a4bfc44d87f38f80338ac98fc46deb384bd1caeacab6867d7"
    "26c40546"
)
TICKET = bytes.fromhex(
    "17030300de3a6b8f90414a97d6959c3487680de5134a2b240e6cffac116e95d41d6af8f6b580dcf3d11d63c758db289a015940252f55"
    "713e061dc13e078891a38efbcf5753ad8ef170ad3c7353d16d9da773b9ca7f2b9fa1b6c0d4a3d03f75e09c30ba1e62972ac46f75f7b9"
    "81be63439b2999ce13064615139891d5e4c5b406f16e3fc181a77ca475840025db2f0a77f81b5ab05b94c01346755f69232c86519d86"
    "cbeeac87aac347d143f9605d64f650db4d023e70e952ca49fe5137121c74bc2697687e248746d6df353005f3bce18696129c8153556b"
    "3b6c6779b37bf15985684f"
)
CLIENT_DATA = bytes.fromhex(
    "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b62974e1f5a62"
    "92a2977014bd1e3deae63aeebb21694915e4"
)
SERVER_DATA = bytes.fromhex(
    "17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dcb501a59a8fcc49c4bf2e5"
    "f0a21c0047c2abf332540dd032e167c2955d"
)
CLIENT_ALERT = bytes.fromhex("1703030013c9872760655666b74d7ff1153efd6db6d0b0e3")
SERVER_ALERT = bytes.fromhex("1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9")
SAID = bytes(range(50))


@pytest.mark.parametrize("without", [(), ("HANDSHAKE",)])
def test_the_trace_is_read(without: tuple[str, ...]) -> None:
    lines = [
        f"{label} {RANDOM} {secret}\n"
        for label, secret in SECRETS.items()
        if not any(word in label for word in without)
    ]
    decryptor = Decryptor(KeyLog("".join(lines).encode()))
    said = [b"", b""]
    at = [0, 0]
    for side, data, missing in (
        (0, CLIENT_HELLO, 0),
        (1, SERVER_HELLO, 0),
        (0, CLIENT_FINISHED, 0),
        (1, TICKET, SERVER_FLIGHT),
        (0, CLIENT_DATA, 0),
        (1, SERVER_DATA, 0),
        (0, CLIENT_ALERT, 0),
        (1, SERVER_ALERT, 0),
    ):
        for plain in decryptor.feed(side, data, at[side] + missing):
            said[plain.side] += plain.data
        at[side] += missing + len(data)
    assert said == [SAID, SAID]
    assert decryptor.verdict is Verdict.DECRYPTED
    assert (decryptor.version, decryptor.cipher) == ("TLS 1.3", "TLS_AES_128_GCM_SHA256")
    assert decryptor.server_name == "server"
