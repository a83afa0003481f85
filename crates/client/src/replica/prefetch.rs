//! Prefetching: the halves of answers that depend on no question, fetched ahead of them, each for one.
//!
//! Two questions under one mask give away their difference. A file can be copied or restored, and so the halves are held in memory
//! alone, and a question takes its own out before it is made.

use std::sync::Arc;

use ciphervec_owner::search::{AnswerFormat, HALF_VERSION, Token};

use crate::error::{Error, Result};
use crate::host::Host;
use crate::replica::Replica;
use crate::replica::alone::Alone;
use crate::replica::asking::{Sent, fetched, query_epoch};
use crate::threads::heavy;

/// Halves that are fetched in one message.
const AT_ONCE: usize = 8;

/// Fetches halves for so many questions more; how many are held then.
pub async fn prefetch(alone: &mut Alone<'_>, host: &dyn Host, queries: usize) -> Result<usize> {
    if let Some(why) = why_not(alone) {
        return Error::input(format!(
            "there is nothing to fetch ahead for {}: {why}",
            alone.name()
        ));
    }
    let mut left = queries;
    while left > 0 {
        let count = left.min(AT_ONCE).min(alone.query_keys.most());
        fetch(alone, host, count).await?;
        left -= count;
    }
    Ok(alone.tokens.len())
}

fn why_not(replica: &Replica) -> Option<String> {
    let description = &replica.description;
    let known = replica.store.listing().query_version;
    if !description.encrypts_queries() {
        return Some(format!(
            "answers of mode {} have no half that depends on a mask alone. Ask without tokens.",
            replica.face.quoted(description.spec.mode().as_str())
        ));
    }
    if description.routing.is_some() {
        return Some(
            "it is routed, and which clusters a question is about is not known before. Ask without tokens."
                .to_owned(),
        );
    }
    if replica.store.computes() {
        return Some("its answers are computed in this process. Ask without tokens.".to_owned());
    }
    if known < u64::from(HALF_VERSION) {
        return Some(format!(
            "its server answers queries up to version {known}, and half answers are version {HALF_VERSION}. Upgrade the server, or ask \
             without tokens."
        ));
    }
    replica.directory.is_empty().then(|| "it is empty. Add rows first.".to_owned())
}

async fn fetch(alone: &mut Alone<'_>, host: &dyn Host, count: usize) -> Result<()> {
    let epoch = query_epoch(alone, host, count).await?;
    let (owner, asked_at) = (Arc::clone(&alone.owner), alone.store.listing().version);
    let request = {
        let directory = &alone.directory;
        heavy(|| owner.request_tokens(count, directory, epoch, AnswerFormat::Short))?
    };
    let bytes = request.to_bytes();
    let sent =
        Sent { bytes, rows: count, named: None, epoch, owner: &owner, query: None, ahead: 0 };
    let before = alone.traffic;
    let (version, data) = fetched(alone, host, &sent).await?;
    alone.traffic = before; // these are no questions
    let directory = &alone.directory;
    match heavy(|| owner.read_tokens(request, &data, directory)) {
        Ok(tokens) => alone.tokens.add(tokens),
        Err(error) if version == asked_at => return Err(error.into()),
        Err(_) => return Err(alone.too_fast()),
    }
    Ok(())
}

/// Halves for so many questions, used up from now on, and the epoch that they were counted under; none where there are too few.
pub fn taken(
    replica: &Replica,
    host: &dyn Host,
    queries: usize,
) -> Result<Option<(u32, Vec<Token>)>> {
    if replica.tokens.len() < queries
        || replica.store.listing().query_version < u64::from(HALF_VERSION)
    {
        return Ok(None);
    }
    let keys = replica.query_keys.present(host);
    let epoch = if keys.refused { Some(replica.description.epoch) } else { keys.session };
    let Some(epoch) = epoch else { return Ok(None) };
    let (pool, directory) = (&replica.tokens, &replica.directory);
    let tokens = replica.owner.take_tokens(pool, queries, directory, epoch, AnswerFormat::Short)?;
    Ok(tokens.map(|tokens| (epoch, tokens)))
}
