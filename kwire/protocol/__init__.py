"""Streams to frames, frames to headers and bodies, requests paired with their responses."""
