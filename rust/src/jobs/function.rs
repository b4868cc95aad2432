//! Functions that jobs call, and how their arguments reach them.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rmpv::Value;
use serde::de::{DeserializeOwned, Deserializer, Visitor, value::Error as ValueError};
use serde::{Serialize, forward_to_deserialize_any};

use crate::jobs::context::Context;
use crate::jobs::envelope::Arguments;
use crate::jobs::format::{from_value, to_value};
use crate::verdict::HandlerError;

/// How a function ended: with a value, with an error, or with one that shows that it cannot be called or what it returned cannot be written.
pub(crate) enum Ended {
    Returned(Value),
    Failed(HandlerError),
    Unusable(String),
}

type Running = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// A function, by its name in the [`App`](crate::jobs::App).
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) time_limit: Option<Duration>,
    call: Arc<dyn Fn(Context, Arguments) -> Result<Running, String> + Send + Sync>,
}

impl Function {
    pub(crate) fn new<In, Out, F, R>(time_limit: Option<Duration>, function: F) -> Function
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(Context, In) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Out, HandlerError>> + Send + 'static,
    {
        let call = move |context, given: Arguments| -> Result<Running, String> {
            let input: In = arguments(given)?;
            let running = AssertUnwindSafe(function(context, input)).catch_unwind();
            Ok(Box::pin(async move {
                match running.await {
                    Ok(Ok(value)) => to_value(&value).map_or_else(Ended::Unusable, Ended::Returned),
                    Ok(Err(error)) => Ended::Failed(error),
                    Err(payload) => Ended::Failed(HandlerError::Failed(format!("panic: {}", text_of(&*payload)))),
                }
            }))
        };
        Function { time_limit, call: Arc::new(call) }
    }

    /// Calls it; the error says why it cannot be called with these arguments (LQ-JOB-7).
    pub(crate) fn call(&self, context: Context, given: Arguments) -> Result<Running, String> {
        (self.call)(context, given)
    }
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a text".into())
}

/// The arguments as the type that a function takes: the fields of a struct have them by position or by name, a tuple by position.
fn arguments<In: DeserializeOwned>((args, kwargs): Arguments) -> Result<In, String> {
    let Some(names) = fields_of::<In>() else {
        if !kwargs.is_empty() {
            return Err("the function takes no arguments by name".into());
        }
        return if args.is_empty() {
            from_value(Value::Nil).or_else(|_| from_value(Value::Array(args)))
        } else {
            from_value(Value::Array(args))
        };
    };
    if args.len() > names.len() {
        return Err(format!("the function takes {} arguments, and {} were given", names.len(), args.len()));
    }
    let mut given: Vec<(Value, Value)> = names.iter().map(|name| Value::from(*name)).zip(args).collect();
    for (name, value) in kwargs {
        if !names.iter().any(|each| name.as_str() == Some(each)) {
            return Err(format!("the function has no argument {name}"));
        }
        if given.iter().any(|(each, _)| *each == name) {
            return Err(format!("the argument {name} was given twice"));
        }
        given.push((name, value));
    }
    from_value(Value::Map(given))
}

/// The names of the fields of a struct, `None` for another type.
fn fields_of<T: DeserializeOwned>() -> Option<&'static [&'static str]> {
    let mut fields = None;
    let _ = T::deserialize(Fields(&mut fields, PhantomData));
    fields
}

/// Notes the fields of the struct that it is asked for, and gives nothing.
struct Fields<'a>(&'a mut Option<&'static [&'static str]>, PhantomData<()>);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ValueError> {
        Err(serde::de::Error::custom("only the fields are asked for"))
    }

    fn deserialize_struct<V: Visitor<'de>>(self, _: &'static str, fields: &'static [&'static str], _: V) -> Result<V::Value, ValueError> {
        *self.0 = Some(fields);
        Err(serde::de::Error::custom("only the fields are asked for"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}
