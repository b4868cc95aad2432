//! Values as bytes, in JSON or MessagePack (LQ-JOB-1, LQ-JOB-17).

use rmpv::Value;
use serde::de::DeserializeOwned;
use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};

/// How jobs and results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// JSON.
    #[default]
    Json,
    /// MessagePack, which also holds bytes and NaN.
    MessagePack,
}

impl Format {
    /// The format of data.
    pub(crate) fn of(data: &[u8]) -> Format {
        if data.first() == Some(&b'{') { Format::Json } else { Format::MessagePack }
    }

    /// Writes a value, or says what the format cannot hold (LQ-JOB-60, LQ-JOB-61).
    pub(crate) fn write(self, value: &Value) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::with_capacity(256);
        match self {
            Format::Json => serde_json::to_writer(&mut bytes, &AsJson(value)).map_err(|error| error.to_string())?,
            Format::MessagePack => rmpv::encode::write_value(&mut bytes, value).map_err(|error| error.to_string())?,
        }
        Ok(bytes)
    }

    pub(crate) fn read(data: &[u8]) -> Result<Value, String> {
        if Format::of(data) == Format::Json {
            return serde_json::from_slice(data).map(of_json).map_err(|error| error.to_string());
        }
        let mut rest = data;
        let value = rmpv::decode::read_value(&mut rest).map_err(|error| error.to_string())?;
        if rest.is_empty() { Ok(value) } else { Err("there is more behind the value".into()) }
    }
}

/// What a value of a program is in a job.
pub(crate) fn to_value(value: &impl Serialize) -> Result<Value, String> {
    let bytes = rmp_serde::to_vec_named(value).map_err(|error| error.to_string())?;
    rmpv::decode::read_value(&mut bytes.as_slice()).map_err(|error| error.to_string())
}

/// What a value of a job is in a program.
pub(crate) fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    rmpv::ext::from_value(value).map_err(|error| error.to_string())
}

fn of_json(value: serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(flag) => Value::Boolean(flag),
        serde_json::Value::String(text) => Value::from(text),
        serde_json::Value::Array(all) => Value::Array(all.into_iter().map(of_json).collect()),
        serde_json::Value::Object(all) => Value::Map(all.into_iter().map(|(name, each)| (name.into(), of_json(each))).collect()),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(whole)) => whole.into(),
            _ => number.as_f64().unwrap_or_default().into(),
        },
    }
}

/// A value as JSON has it.
struct AsJson<'a>(&'a Value);

impl Serialize for AsJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Nil => to.serialize_unit(),
            Value::Boolean(flag) => to.serialize_bool(*flag),
            Value::Integer(number) => match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => to.serialize_i64(whole),
                (None, whole) => to.serialize_u64(whole.unwrap_or_default()),
            },
            Value::F32(number) => finite(f64::from(*number), to),
            Value::F64(number) => finite(*number, to),
            Value::String(text) => to.serialize_str(text.as_str().ok_or_else(|| S::Error::custom("a text is not valid UTF-8"))?),
            Value::Array(all) => to.collect_seq(all.iter().map(AsJson)),
            Value::Map(all) => {
                let mut map = to.serialize_map(Some(all.len()))?;
                for (name, each) in all {
                    map.serialize_entry(name.as_str().ok_or_else(|| S::Error::custom("a name is no text"))?, &AsJson(each))?;
                }
                map.end()
            }
            Value::Binary(_) | Value::Ext(..) => Err(S::Error::custom("JSON cannot hold bytes: send them as text, or use MessagePack")),
        }
    }
}

fn finite<S: Serializer>(number: f64, to: S) -> Result<S::Ok, S::Error> {
    if !number.is_finite() {
        return Err(S::Error::custom(format!("JSON cannot hold the number {number}")));
    }
    to.serialize_f64(number)
}

/// A member of a map.
pub(crate) fn member<'a>(map: &'a Value, name: &str) -> Option<&'a Value> {
    map.as_map()?.iter().find(|(each, _)| each.as_str() == Some(name)).map(|(_, value)| value)
}

pub(crate) fn text_member<'a>(map: &'a Value, name: &str) -> Option<&'a str> {
    member(map, name)?.as_str()
}

/// A whole number, also one that is written as 3.0.
pub(crate) fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| match value {
        Value::F64(number) if number.fract() == 0.0 && number.abs() < 9e15 => Some(*number as i64),
        _ => None,
    })
}

pub(crate) fn integer_member(map: &Value, name: &str) -> Option<i64> {
    member(map, name).and_then(integer)
}

/// A map of these members, without those that are none.
pub(crate) fn map<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    Value::Map(members.into_iter().filter_map(|(name, value)| Some((name.into(), value?))).collect())
}
