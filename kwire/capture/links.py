"""Names of link types, for sentences about a capture that cannot be read.

Source: the registry of tcpdump.org (https://www.tcpdump.org/linktypes.html), without the prefix ``LINKTYPE_``.
"""

from __future__ import annotations

from typing import Final

from kwire.kernels.layers import LINKS

__all__ = ["NAMES", "named", "supported"]

NAMES: Final = {
    0: "NULL", 1: "ETHERNET", 3: "AX25", 6: "IEEE802_5", 7: "ARCNET_BSD", 8: "SLIP", 9: "PPP", 10: "FDDI",
    12: "RAW", 14: "RAW", 50: "PPP_HDLC", 51: "PPP_ETHER", 99: "SYMANTEC_FIREWALL", 100: "ATM_RFC1483", 101: "RAW",
    104: "C_HDLC", 105: "IEEE802_11", 106: "ATM_CLIP", 107: "FRELAY", 108: "LOOP", 109: "ENC", 113: "LINUX_SLL",
    114: "LTALK", 117: "PFLOG", 119: "IEEE802_11_PRISM", 122: "IP_OVER_FC", 123: "SUNATM", 127: "IEEE802_11_RADIOTAP",
    129: "ARCNET_LINUX", 138: "APPLE_IP_OVER_IEEE1394", 139: "MTP2_WITH_PHDR", 140: "MTP2", 141: "MTP3", 142: "SCCP",
    143: "DOCSIS", 144: "LINUX_IRDA", 163: "IEEE802_11_AVS", 165: "BACNET_MS_TP", 166: "PPP_PPPD", 169: "GPRS_LLC",
    177: "LINUX_LAPD", 187: "BLUETOOTH_HCI_H4", 189: "USB_LINUX", 192: "PPI", 195: "IEEE802_15_4_WITHFCS",
    196: "SITA", 197: "ERF", 201: "BLUETOOTH_HCI_H4_WITH_PHDR", 202: "AX25_KISS", 203: "LAPD",
    204: "PPP_WITH_DIR", 205: "C_HDLC_WITH_DIR", 206: "FRELAY_WITH_DIR", 209: "IPMB_LINUX", 220: "USB_LINUX_MMAPPED",
    224: "FC_2", 226: "IPNET", 227: "CAN_SOCKETCAN", 228: "IPV4", 229: "IPV6", 230: "IEEE802_15_4_NOFCS",
    231: "DBUS", 235: "DVB_CI", 237: "STANAG_5066_D_PDU", 239: "NFLOG", 240: "NETANALYZER",
    241: "NETANALYZER_TRANSPARENT", 242: "IPOIB", 243: "MPEG_2_TS", 245: "NFC_LLCP", 247: "INFINIBAND", 248: "SCTP",
    249: "USBPCAP", 251: "BLUETOOTH_LE_LL", 253: "NETLINK", 254: "BLUETOOTH_LINUX_MONITOR",
    256: "BLUETOOTH_LE_LL_WITH_PHDR", 258: "PKTAP", 259: "EPON", 264: "ISO_14443", 265: "RDS", 266: "USB_DARWIN",
    272: "DISPLAYPORT_AUX", 276: "LINUX_SLL2", 279: "EBHSCR", 280: "VPP_DISPATCH", 288: "USB_2_0",
    290: "ETHERNET_MPACKET", 295: "ETW",
    **{147 + number: f"USER{number}" for number in range(16)},
}  # fmt: skip
"""Of the link types that captures are known to have; there are more."""


def named(link: int) -> str:
    """The number of a link type, and its name if it has one."""
    return f"{link} ({NAMES[link]})" if link in NAMES else str(link)


def supported() -> str:
    """The link types that are supported, in words."""
    return ", ".join(dict.fromkeys(NAMES.get(link, str(link)) for link in LINKS))
