//! Adds in one pipeline or transaction of a connection of the user's own.

use leaseq::{NewItem, Pipeline, added};
use redis::{RedisError, Value as Reply};
use serde_json::Value;

use crate::forms::{self, Failure};
use crate::methods::Call;

pub async fn pipeline(call: &Call<'_>) -> Result<Value, Failure> {
    let queue = call.queue()?;
    let mut own = Pipeline::new();
    for each in call.args.list("calls") {
        let options = each.get("options");
        let items = each.list("items").iter().map(|item| item.item(options)).collect::<Result<Vec<NewItem>, Failure>>()?;
        own.add(&queue, &items)?;
    }
    let mut pipeline = redis::Pipeline::new();
    if call.args.flag("transaction") {
        pipeline.atomic();
    }
    for command in own.into_commands() {
        pipeline.add_command(command);
    }
    let replies: Vec<Reply> = send(call.url, &pipeline).await.map_err(|error| Failure::harness(error.to_string()))?;
    let mut answers = Vec::new();
    for reply in replies {
        answers.push(added(reply)?.iter().map(forms::added).collect::<Value>());
    }
    Ok(answers.into())
}

async fn send(url: &str, pipeline: &redis::Pipeline) -> Result<Vec<Reply>, RedisError> {
    let client = redis::Client::open(url)?;
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    pipeline.query_async(&mut connection).await
}
