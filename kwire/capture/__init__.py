"""Captures (pcap, pcapng) as tables of frames, messages and records."""
