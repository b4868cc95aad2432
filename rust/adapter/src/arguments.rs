//! The arguments of a method, as a message has them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use leaseq::{AddOptions, NewItem};
use serde_json::{Value, json};

use crate::forms::Failure;

/// Where half of a surrogate pair is moved to, which no string of Rust can hold.
const HALVES: u32 = 0x10_0000;

/// Moves halves of surrogate pairs to characters that a JSON string can have.
pub fn without_halves(line: &str) -> String {
    let mut found = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\\') {
        found.push_str(&rest[..at]);
        rest = &rest[at..];
        let (taken, half) = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, None),
            (Some(half @ 0xd800..=0xdfff), _) => (6, char::from_u32(HALVES + half)),
            (Some(_), _) => (6, None),
            (None, _) => (2, None),
        };
        let (escape, behind) = rest.split_at(taken);
        match half {
            Some(moved) => found.push(moved),
            None => found.push_str(escape),
        }
        rest = behind;
    }
    found + rest
}

/// The number of the escape `\u` and four digits that the text starts with.
fn unit(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

fn text_bytes(text: &str) -> Vec<u8> {
    let mut found = Vec::new();
    for each in text.chars() {
        match u32::from(each).wrapping_sub(HALVES) {
            half @ 0xd800..=0xdfff => {
                found.extend([0xe0 | (half >> 12) as u8, 0x80 | (half >> 6 & 0x3f) as u8, 0x80 | (half & 0x3f) as u8]);
            }
            _ => found.extend(each.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    found
}

pub fn b64(bytes: &[u8]) -> Value {
    json!({"$b64": STANDARD.encode(bytes)})
}

pub fn bytes_of(value: &Value) -> Result<Vec<u8>, Failure> {
    if let Some(text) = value["$text"].as_str() {
        return Ok(text_bytes(text));
    }
    let encoded = value["$b64"].as_str().ok_or_else(|| Failure::harness("no bytes"))?;
    STANDARD.decode(encoded).map_err(|error| Failure::harness(error.to_string()))
}

#[derive(Clone, Copy)]
pub struct Arguments<'a>(pub &'a Value);

impl<'a> Arguments<'a> {
    pub fn has(self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    pub fn get(self, name: &str) -> Arguments<'a> {
        Arguments(&self.0[name])
    }

    pub fn list(self, name: &str) -> Vec<Arguments<'a>> {
        self.0[name].as_array().map(|all| all.iter().map(Arguments).collect()).unwrap_or_default()
    }

    pub fn texts(self, name: &str) -> Vec<&'a str> {
        self.list(name).iter().filter_map(|each| each.0.as_str()).collect()
    }

    pub fn text(self, name: &str) -> &'a str {
        self.0[name].as_str().unwrap_or_default()
    }

    pub fn flag(self, name: &str) -> bool {
        self.0[name] == true
    }

    pub fn bytes(self, name: &str) -> Result<Vec<u8>, Failure> {
        bytes_of(&self.0[name])
    }

    pub fn ids(self) -> Result<Vec<Vec<u8>>, Failure> {
        self.list("ids").iter().map(|each| bytes_of(each.0)).collect()
    }

    /// An integer; beyond 2^53 - 1 it comes as text.
    pub fn number(self, name: &str) -> Result<i64, Failure> {
        let value = &self.0[name];
        let found = value.as_i64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
        found.ok_or_else(|| Failure::harness(format!("{name} is no number")))
    }

    /// Milliseconds, perhaps with a fraction.
    pub fn duration(self, name: &str) -> Result<Duration, Failure> {
        let value = &self.0[name];
        if let Some(ms) = value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok())) {
            return Ok(Duration::from_millis(ms));
        }
        match value.as_f64() {
            Some(ms) if ms >= 0.0 => Ok(Duration::from_millis(ms.trunc() as u64) + Duration::from_nanos((ms.fract() * 1e6).round() as u64)),
            _ => Err(Failure::harness(format!("{name} is no duration"))),
        }
    }

    pub fn time(self, name: &str) -> Result<SystemTime, Failure> {
        Ok(UNIX_EPOCH + self.duration(name)?)
    }

    /// An ITEM with its OPTIONS.
    pub fn item(self, options: Arguments) -> Result<NewItem, Failure> {
        let mut given = AddOptions::new();
        if options.has("delay_ms") {
            given = given.delay(options.duration("delay_ms")?);
        }
        if options.has("not_before_ms") {
            given = given.not_before(options.time("not_before_ms")?);
        }
        if options.has("priority") {
            given = given.priority(options.number("priority")?);
        }
        if options.has("max_attempts") {
            given = given.max_attempts(options.number("max_attempts")?);
        }
        if options.has("expires_in_ms") {
            given = given.expires_in(options.duration("expires_in_ms")?);
        }
        if options.has("expires_to") {
            given = given.expires_to();
        }
        if options.has("keep_ms") {
            given = given.keep(options.duration("keep_ms")?);
        }
        if self.has("content_type") {
            given = given.content_type(self.bytes("content_type")?);
        }
        if let Some(headers) = self.0["headers"].as_object() {
            for (name, value) in headers {
                given = given.header(name, bytes_of(value)?);
            }
        }
        Ok(NewItem::new(self.bytes("id")?, self.bytes("data")?).with(given))
    }
}
