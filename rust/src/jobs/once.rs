//! Ids that are made of a function and its arguments, and the slots of throttled jobs (`spec/jobs.md`, Ids made of arguments).

use std::collections::BTreeSet;
use std::time::Duration;

use redis::Cmd;
use rmpv::Value;
use sha2::{Digest, Sha256};

use crate::encoding::{Added, Word};
use crate::error::{Error, PartialError, Result};
use crate::generated::codecs::OutcomeState;
use crate::generated::scripts::MAX_ENTRIES;
use crate::item::NewItem;
use crate::jobs::producer::Call;
use crate::queue::{Queue, Wait};
use crate::script::command;

/// The hexadecimal digits of the SHA-256 that an id has.
const DIGITS: usize = 32;

/// The length of a slot in ms.
pub(crate) fn slot_ms(length: Duration) -> u128 {
    (length.as_micros() + 500) / 1000
}

/// The id of a unique job, or the reason why JSON does not have the arguments.
pub(crate) fn unique_id(function: &str, args: &[Value], kwargs: &[(Value, Value)]) -> std::result::Result<String, String> {
    Ok(format!("unique-{}", digest(function, args, kwargs)?))
}

/// The id of a throttled job in the slot of a time in ms; otherwise as `unique_id`.
pub(crate) fn slot_id(
    function: &str,
    args: &[Value],
    kwargs: &[(Value, Value)],
    length: Duration,
    now: u128,
) -> std::result::Result<String, String> {
    let (digest, length) = (digest(function, args, kwargs)?, slot_ms(length).max(1));
    Ok(format!("throttle-{digest}-{length}-{}", now / length))
}

fn digest(function: &str, args: &[Value], kwargs: &[(Value, Value)]) -> std::result::Result<String, String> {
    let called = Value::Array(vec![function.into(), Value::Array(args.to_vec()), Value::Map(kwargs.to_vec())]);
    let mut digest = format!("{:x}", Sha256::digest(canonical(&called)?));
    digest.truncate(DIGITS);
    Ok(digest)
}

/// JSON as RFC 8785 writes it. Integers keep all their digits, as in Python.
fn canonical(value: &Value) -> std::result::Result<String, String> {
    Ok(match value {
        Value::Nil => "null".into(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::F32(number) => canonical_number(f64::from(*number))?,
        Value::F64(number) => canonical_number(*number)?,
        Value::String(text) => canonical_text(text.as_str().ok_or("a text is not valid UTF-8")?)?,
        Value::Array(all) => format!("[{}]", all.iter().map(canonical).collect::<std::result::Result<Vec<_>, _>>()?.join(",")),
        Value::Map(all) => {
            let name_of = |(name, each)| Ok((Value::as_str(name).ok_or("a name is no text")?, each));
            let mut members = all.iter().map(|(name, each)| name_of((name, each))).collect::<std::result::Result<Vec<_>, String>>()?;
            members.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            let written = members.into_iter().map(|(name, each)| Ok(format!("{}:{}", canonical_text(name)?, canonical(each)?)));
            format!("{{{}}}", written.collect::<std::result::Result<Vec<_>, String>>()?.join(","))
        }
        Value::Binary(_) | Value::Ext(..) => return Err("bytes are no JSON".into()),
    })
}

fn canonical_text(text: &str) -> std::result::Result<String, String> {
    serde_json::to_string(text).map_err(|error| error.to_string())
}

/// The shortest digits that give the number back, with an exponent from 1e21 on and below 1e-6.
fn canonical_number(number: f64) -> std::result::Result<String, String> {
    if !number.is_finite() {
        return Err(format!("{number} is no number of JSON"));
    }
    if number == 0.0 {
        return Ok("0".into());
    }
    if (1e-6..1e21).contains(&number.abs()) {
        return Ok(number.to_string());
    }
    let text = format!("{number:e}");
    Ok(if text.contains("e-") { text } else { text.replace('e', "e+") })
}

/// A call, its id and its item.
pub(crate) struct Draft<'a> {
    pub(crate) call: &'a Call,
    pub(crate) id: &'a str,
    pub(crate) item: NewItem,
}

/// Adds jobs to one queue, and returns for each whether it was added.
pub(crate) async fn add(queue: &Queue, drafts: Vec<Draft<'_>>) -> Result<Vec<bool>> {
    let held = held(queue, &drafts).await?;
    let (mut sent, mut items) = (Vec::new(), Vec::new());
    for (draft, _) in drafts.into_iter().zip(&held).filter(|(_, held)| !**held) {
        sent.push((draft.call, draft.id));
        items.push(draft.item);
    }
    if items.is_empty() {
        return Ok(vec![false; held.len()]);
    }
    match queue.add_all(&items, Wait::No).await {
        Ok(answers) => {
            let mut answers = answers.into_iter().map(Added::is_new);
            Ok(held.iter().map(|held| !held && answers.next().unwrap_or_default()).collect())
        }
        Err(PartialError { answers, in_doubt, cause }) => {
            let missing = |at: &usize| answers.get(*at).map_or(*at >= answers.len() + in_doubt, |each| each.had_no_room());
            let unused: Vec<&str> =
                (0..sent.len()).filter(missing).filter(|at| sent[*at].0.throttle.is_some()).map(|at| sent[at].1).collect();
            free_slots(queue, &unused).await;
            let alone = if held.len() == 1 { answers.first().map(|added| added.is_new()) } else { None };
            Err(cause.with_answer(alone))
        }
    }
}

/// Which jobs must not be added, since their result is kept or their slot has its job (LQ-ADD-8). The slots of the others are taken.
async fn held(queue: &Queue, drafts: &[Draft<'_>]) -> Result<Vec<bool>> {
    let unique: BTreeSet<&str> = drafts.iter().filter(|draft| draft.call.unique).map(|draft| draft.id).collect();
    let unique: Vec<&str> = unique.into_iter().collect();
    let mut kept = BTreeSet::new();
    if !unique.is_empty() {
        let outcomes = queue.outcomes(&unique).await?;
        kept.extend(unique.iter().zip(outcomes).filter(|(_, outcome)| outcome.state == OutcomeState::Result).map(|(id, _)| *id));
    }
    let mut held: Vec<bool> = drafts.iter().map(|draft| draft.call.unique && kept.contains(draft.id)).collect();
    let throttled: Vec<usize> = (0..drafts.len()).filter(|at| drafts[*at].call.throttle.is_some()).collect();
    let mut taken = Vec::new();
    for chunk in throttled.chunks(MAX_ENTRIES) {
        let slots: Vec<(&str, Duration)> = chunk.iter().map(|at| (drafts[*at].id, drafts[*at].call.throttle.unwrap_or_default())).collect();
        match take_slots(queue, &slots).await {
            Ok(free) => {
                for (at, free) in chunk.iter().zip(free) {
                    held[*at] = !free;
                    taken.extend(free.then_some(drafts[*at].id));
                }
            }
            Err(error) => {
                free_slots(queue, &taken).await;
                return Err(error);
            }
        }
    }
    Ok(held)
}

/// Takes up to 256 slots, and returns for each whether it was free.
async fn take_slots(queue: &Queue, slots: &[(&str, Duration)]) -> Result<Vec<bool>> {
    let set = |(id, length): &(&str, Duration)| {
        command(&["SET".word(), slot_key(queue, id), "1".word(), "NX".word(), "PX".word(), slot_ms(*length).to_string().into()])
    };
    let commands: Vec<Cmd> = slots.iter().map(set).collect();
    let key = slot_key(queue, slots[0].0);
    match queue.pool().shared.transaction(&key, queue.pool().limit, &commands).await? {
        redis::Value::Array(replies) => Ok(replies.iter().map(|reply| *reply != redis::Value::Nil).collect()),
        _ => Err(Error::bad_reply("no array")),
    }
}

/// Frees slots that were taken. If that fails, they stay taken.
async fn free_slots(queue: &Queue, ids: &[&str]) {
    for chunk in ids.chunks(MAX_ENTRIES) {
        let keys: Vec<Vec<u8>> = chunk.iter().map(|id| slot_key(queue, id)).collect();
        let words = [vec!["DEL".word()], keys.clone()].concat();
        let _ = queue.pool().shared.send(&keys[0], queue.pool().limit, &command(&words)).await;
    }
}

/// The key that says that the slot of a throttled job is taken; the slot is a part of the id.
fn slot_key(queue: &Queue, id: &str) -> Vec<u8> {
    queue.keys().key(&format!("slot:{id}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::format::to_value;
    use serde_json::json;

    #[test]
    fn ids_are_those_of_the_specification() {
        let page = std::fs::read_to_string("../spec/jobs.md").unwrap();
        let args = [to_value(&[10.0, 20.0]).unwrap()];
        let kwargs = [("tax".into(), 0.1.into()), ("place".into(), "Zürich".into())];
        let unique = unique_id("shop.total", &args, &kwargs).unwrap();
        let slot = slot_id("shop.total", &args, &kwargs, Duration::from_secs(60), 1_764_327_725_000).unwrap();
        assert!(page.contains(&format!("`{unique}`")) && page.contains(&format!("`{slot}`")), "{unique} {slot}");
    }

    #[test]
    fn arguments_are_written_in_one_way() {
        let written = |value: serde_json::Value| canonical(&to_value(&value).unwrap()).unwrap();
        let numbers = json!([1, 1.0, -0.0, 0.1, 1e16, 1.2345678901234567e20, 1e21, -1.5e300, 1e-6, 1e-7, 1.25e-9, 5e-324, u64::MAX]);
        let texts = "[1,1,0,0.1,10000000000000000,123456789012345670000,1e+21,-1.5e+300,0.000001,1e-7,1.25e-9,5e-324,18446744073709551615]";
        assert_eq!(written(numbers), texts);
        assert_eq!(written(json!([true, null, "é\"\\\n\u{1}\u{2028}\u{7f}"])), "[true,null,\"é\\\"\\\\\\n\\u0001\u{2028}\u{7f}\"]");
        // U+FB33 is behind the first half of U+1F600 in UTF-16
        assert_eq!(written(json!({"\u{fb33}": 1, "\u{1f600}": 2})), "{\"\u{1f600}\":2,\"\u{fb33}\":1}");
        assert_eq!(written(json!({"b": 1, "a": [{"d": 2.5, "c": []}], "é": {}})), r#"{"a":[{"c":[],"d":2.5}],"b":1,"é":{}}"#);
    }
}
