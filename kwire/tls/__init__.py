"""TLS 1.2 and 1.3 of captured connections, decrypted with the secrets that one of their ends wrote down.

    keys = KeyLog.open("keys.log")              lines of SSLKEYLOGFILE
    connection = Decryptor(keys)
    connection.feed(side, data, position)       bytes of a direction in, plaintext out: a list of Plain
    connection.finish()
    connection.verdict, connection.why          decrypted, or why not

It knows nothing of captures or of Kafka. Needs the extra ``tls`` (the package ``cryptography``).
"""

from __future__ import annotations

from kwire.tls.decryptor import Decryptor, Plain
from kwire.tls.keylog import KeyLog
from kwire.tls.verdicts import Verdict

__all__ = ["Decryptor", "KeyLog", "Plain", "Verdict"]
