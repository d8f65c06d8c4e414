"""The numbers that capture and framing keep about a connection, as columns of int64 tables.

``kwire.capture.packets`` and ``kwire.capture.streams`` fill the tables, ``kwire.protocol.framing`` reads and completes
them; a kernel takes plain arrays, so the meaning of their columns stands here, once.

A connection is a row of the connection table, its slot; its two directions are rows 2 * slot (A to B, where A is
the end that sent the first packet seen) and 2 * slot + 1 of the stream table. A position counts the bytes of one
direction.
"""

from __future__ import annotations

from typing import Final

# Columns of the connection table. A and B are the two ends; A sent the first packet that was seen.
C_NUMBER: Final = 0
C_FAMILY: Final = 1
C_A_HIGH: Final = 2
C_A_LOW: Final = 3
C_B_HIGH: Final = 4
C_B_LOW: Final = 5
C_A_PORT: Final = 6
C_B_PORT: Final = 7
C_ROLE: Final = 8
"""What the connection is; see ROLE_*. Set here for forced ports, otherwise by ``kwire.protocol.framing``."""
C_CLIENT: Final = 9
"""Which end opened the connection: 0 A, 1 B, -1 unknown."""
C_CLOSED: Final = 10
"""1 after RST, or when another connection took over the same ports."""
C_PENDING_HEAD: Final = 11
C_PENDING_TAIL: Final = 12
C_PENDING: Final = 13
C_SASL: Final = 14
C_FIRST_ID: Final = 15
"""Correlation id of the first request seen, -1 before that."""
C_TOLD: Final = 16
"""1 when the row of an encrypted connection has been written."""
C_LAST_CLIENT: Final = 17
"""Number of the client_id of its latest request, -1 before that."""
CONN_COLUMNS: Final = 18

ROLE_UNKNOWN: Final = 0
ROLE_A_REQUESTS: Final = 1
ROLE_B_REQUESTS: Final = 2
ROLE_OTHER: Final = 3
"""Not Kafka, or not one of the ports asked for: its segments are dropped as soon as they are seen."""
ROLE_ENCRYPTED: Final = 4

# Columns of the stream table: two rows for each connection, in the order A to B, B to A.
S_REFERENCE: Final = 0
"""Highest position seen, -1 before the first; what the next sequence number is resolved against."""
S_START: Final = 1
"""Position of the first byte of the stream if its SYN was seen, else -1."""
S_NEXT: Final = 2
"""Position up to which the stream has been dealt with, -1 before the first byte."""
S_SYNC: Final = 3
"""1 if a frame begins at S_NEXT, 0 if that is not known."""
S_END: Final = 4
"""Position after the last byte if FIN was seen, else -1."""
S_SKIPPED: Final = 5
"""Bytes skipped since the stream lost its frame boundary, until a row tells it."""
S_ACKED: Final = 6
"""Highest position of this stream that the other end has acknowledged, -1 if unknown."""
STREAM_COLUMNS: Final = 7

# Columns of the segment table: what packets.py finds and streams.py puts in order.
SEG_STREAM: Final = 0
SEG_POS: Final = 1
SEG_LEN: Final = 2
SEG_OFF: Final = 3
"""Where the bytes stand in the window; -1 if the capture does not have them (snapshot length)."""
SEG_TIME: Final = 4
"""Nanoseconds since 1970."""
SEGMENT_COLUMNS: Final = 5

# Columns of the piece table: parts of segments, in order, without overlaps. Where one piece does not begin at the
# position at which the one before it ends, or has no bytes, the capture has a gap that has been given up.
P_POS: Final = 0
P_LEN: Final = 1
P_OFF: Final = 2
"""Where the bytes stand in the joined data; -1 if there are none. Touching pieces touch there as well."""
P_TIME: Final = 3
"""When the capture had these bytes and all before them; it never decreases along a stream."""
PIECE_COLUMNS: Final = 4

# Columns of the table of streams that have pieces or waiting segments in this window, ordered by stream.
A_STREAM: Final = 0
A_FIRST: Final = 1
A_END: Final = 2
"""Its pieces are rows A_FIRST to A_END - 1."""
A_WAITING: Final = 3
"""1 if segments wait behind a hole that may still be filled."""
A_SEG_FIRST: Final = 4
A_SEG_END: Final = 5
"""Its segments in the order made by streams.py."""
ACTIVE_COLUMNS: Final = 6

# Columns of the frame table.
F_SLOT: Final = 0
F_RESPONSE: Final = 1
"""0 request, 1 response."""
F_CLIENT_SIDE: Final = 2
"""Which end is the client: 0 A, 1 B."""
F_TIME: Final = 3
"""Nanoseconds since 1970, of the packet that has the last byte."""
F_OFF: Final = 4
"""Where the frame (after its size) begins in the joined data."""
F_SEEN: Final = 5
"""Bytes of the frame that are there: F_SIZE, or less if it is cut off."""
F_SIZE: Final = 6
F_API: Final = 7
"""API key, or ABSENT."""
F_VERSION: Final = 8
F_ID: Final = 9
"""Correlation id, or ABSENT."""
F_CLIENT: Final = 10
"""Number of the client_id in the name table; -1 null or unknown."""
F_LATENCY: Final = 11
"""Nanoseconds, or ABSENT."""
F_STATUS: Final = 12
"""See ST_*."""
F_WHY: Final = 13
"""See WHY_*; 0 for none."""
F_DETAIL: Final = 14
"""A number that belongs to F_WHY."""
FRAME_COLUMNS: Final = 15

ST_OK: Final = 0
ST_UNPAIRED: Final = 1
ST_MALFORMED: Final = 2
ST_UNSUPPORTED: Final = 3
ST_CUT_OFF: Final = 4
ST_GAP: Final = 5
ST_ENCRYPTED: Final = 6
ST_SASL: Final = 7

# Columns of the table of requests that wait for their response, one linked list for each connection.
W_ID: Final = 0
W_API: Final = 1
"""API key, or SASL_TOKEN."""
W_VERSION: Final = 2
W_CLIENT: Final = 3
W_TIME: Final = 4
W_NEXT: Final = 5
"""The next one of the connection, or of the list of free rows; -1 at the end."""
WAITING_COLUMNS: Final = 6

SASL_TOKEN: Final = -2
