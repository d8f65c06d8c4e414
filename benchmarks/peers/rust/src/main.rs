//! A peer of kwire's benchmarks: the crate kafka-protocol. The protocol is in peers/__init__.py.

use std::hint::black_box;
use std::io::{self, BufRead};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestKind, ResponseKind};
use kafka_protocol::records::RecordBatchDecoder;

type Said<T> = Result<T, String>;

enum Message {
    Request(RequestKind),
    Response(ResponseKind),
}

/// What was loaded.
struct Loaded {
    request: bool,
    key: ApiKey,
    version: i16,
    pieces: Vec<Bytes>,
    objects: Vec<Message>,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string().replace('\n', " ")
}

fn pieces(file: &str) -> Said<Vec<Bytes>> {
    let mut data = Bytes::from(std::fs::read(file).map_err(text)?);
    let mut found = Vec::new();
    while data.len() >= 4 {
        let size = u32::from_be_bytes(data.split_to(4)[..].try_into().unwrap()) as usize;
        // Memory of its own, as a frame has that came from a socket.
        found.push(Bytes::copy_from_slice(&data.split_to(size)));
    }
    Ok(found)
}

impl Loaded {
    fn decoded(&self, body: &Bytes) -> Said<Message> {
        let mut left = body.clone();
        let made = if self.request {
            Message::Request(RequestKind::decode(self.key, &mut left, self.version).map_err(text)?)
        } else {
            Message::Response(ResponseKind::decode(self.key, &mut left, self.version).map_err(text)?)
        };
        if left.is_empty() { Ok(made) } else { Err("bytes are left".into()) }
    }

    fn encoded(&self, message: &Message) -> Said<BytesMut> {
        let mut out = BytesMut::new();
        match message {
            Message::Request(one) => one.encode(&mut out, self.version),
            Message::Response(one) => one.encode(&mut out, self.version),
        }
        .map_err(text)?;
        Ok(out)
    }

    /// All records: how many there are, and what their fields add up to.
    fn records(&self) -> Said<(i64, i64)> {
        let (mut count, mut total) = (0i64, 0i64);
        for piece in &self.pieces {
            for set in RecordBatchDecoder::decode_all(&mut piece.clone()).map_err(text)? {
                for one in &set.records {
                    let size = |some: &Option<Bytes>| some.as_ref().map_or(0, Bytes::len) as i64;
                    total += one.offset + one.timestamp + size(&one.key) + size(&one.value);
                    for (key, value) in &one.headers {
                        total += key.len() as i64 + size(value);
                    }
                    count += 1;
                }
            }
        }
        Ok((count, total))
    }

    fn pass(&self, what: &str) -> Said<()> {
        match what {
            "decode" => {
                for body in &self.pieces {
                    black_box(self.decoded(body)?);
                }
            }
            "encode" => {
                for one in &self.objects {
                    black_box(self.encoded(one)?);
                }
            }
            _ => {
                black_box(self.records()?);
            }
        }
        Ok(())
    }
}

fn spent() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes into the struct that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

fn answer(words: &[&str], kept: &mut Option<Loaded>) -> Said<String> {
    match words {
        ["codec", kind, key, version, file] => {
            let key: i16 = key.parse().map_err(text)?;
            let key = ApiKey::try_from(key).map_err(|()| "no such API".to_string())?;
            let version = version.parse().map_err(text)?;
            let pieces = pieces(file)?;
            let mut made = Loaded { request: *kind == "request", key, version, pieces, objects: Vec::new() };
            let mut objects = Vec::new();
            for body in &made.pieces {
                let one = made.decoded(body)?;
                if made.encoded(&one)?[..] != body[..] {
                    return Err("it does not write what it read".into());
                }
                objects.push(one);
            }
            made.objects = objects;
            *kept = Some(made);
            Ok(String::new())
        }
        ["records", file] => {
            let pieces = pieces(file)?;
            let made = Loaded { request: false, key: ApiKey::Fetch, version: 4, pieces, objects: Vec::new() };
            let (count, total) = made.records()?;
            *kept = Some(made);
            Ok(format!("{count} {total}"))
        }
        ["run", what, passes] => {
            let (passes, loaded): (u64, _) = (passes.parse().map_err(text)?, kept.as_ref().ok_or("nothing is loaded")?);
            let began = spent();
            for _ in 0..passes {
                loaded.pass(what)?;
            }
            Ok((spent() - began).to_string())
        }
        _ => Err("no such command".into()),
    }
}

fn main() {
    println!("ready kafka-protocol {}, rustc {}", env!("PEER_CRATE"), env!("PEER_RUSTC"));
    let mut kept = None;
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let words: Vec<&str> = line.split_whitespace().collect();
        match answer(&words, &mut kept) {
            Ok(said) => println!("ok {said}"),
            Err(said) => println!("no {said}"),
        }
    }
}
