//! Streaming: a long answer is opened as it comes.

use std::sync::Arc;
use std::time::Duration;

use ciphervec_owner::Error as SchemeError;
use ciphervec_owner::search::{AnswerOpener, Opened};

use crate::error::{Error, Result};
use crate::host::{Head, Host, Progress};
use crate::replica::alone::Alone;
use crate::replica::asking::{
    Answer, Keep, Message, Under, answered, before_opening, most_bytes, query_epoch, sealed,
};
use crate::store::answered_on;
use crate::threads::runner;

/// Bytes of an answer, under schemes whose answers say how long they are.
const MAX_ANSWER: u64 = 1 << 40;

/// What an answer is opened with while it comes.
struct Streamed<'a> {
    host: &'a dyn Host,
    fresh: &'a dyn Fn() -> AnswerOpener,
    opener: Option<AnswerOpener>,
    /// Which state it has to be of, and what is said of another.
    expected: Option<(u64, Error)>,
    /// On opening it.
    spent: Duration,
}

impl Keep for Streamed<'_> {
    fn begin(&mut self, head: &Head) -> Result<()> {
        // What failed its check is said at the end, also where another attempt follows.
        if let Some(failed) = self.opener.take().and_then(|opener| failed(opener.finish())) {
            return Err(Error::Scheme(failed));
        }
        // Before any of it is opened: which state it is of.
        let (now, _) = answered_on(head, "the server")?;
        if let Some((_, error)) = self.expected.take_if(|(version, _)| *version != now) {
            return Err(error);
        }
        self.opener = Some((self.fresh)());
        Ok(())
    }

    fn take(&mut self, piece: &[u8]) {
        let began = self.host.now();
        if let Some(opener) = &mut self.opener {
            opener.write(piece);
        }
        self.spent += self.host.now().saturating_sub(began);
    }
}

/// What has failed its check of an answer that ended, however it ended.
fn failed(opened: core::result::Result<Opened, SchemeError>) -> Option<SchemeError> {
    match opened {
        Err(error @ (SchemeError::Tampered { .. } | SchemeError::Mismatched { .. })) => Some(error),
        Ok(Opened { disqualified: segments, .. }) if !segments.is_empty() => {
            Some(SchemeError::Tampered { segments })
        }
        _ => None,
    }
}

/// As [`super::asking::whole`], for an answer that is opened as it comes. It has to be one of the state that it was asked about: a
/// conflict says that others were faster.
pub async fn streamed(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    message: &Message<'_>,
    rows: &[f32],
) -> Result<Opened> {
    let queries = rows.len() / alone.description.spec.dimension();
    let epoch = query_epoch(alone, host, queries).await?;
    let asked = sealed(alone, host, message, rows, Under { epoch, ..Under::default() })?;
    let flood = before_opening(alone, host, &asked).await?.map(Arc::new);
    let both = (Arc::clone(&asked.owner), Arc::clone(&asked.query));
    let selection = message.allow.clone();
    let (directory, retrieval) = (alone.directory.snapshot(), asked.retrieval);
    let fresh = || {
        let (both, selection, flood) = (both.clone(), selection.clone(), flood.clone());
        AnswerOpener::new(both, directory.snapshot(), retrieval, selection, flood, &runner)
    };
    let expected = Some((alone.store.listing().version, alone.too_fast()));
    let mut kept = Streamed { host, fresh: &fresh, opener: None, expected, spent: Duration::ZERO };
    let most = most_bytes(alone, queries, None).unwrap_or(MAX_ANSWER);
    let mut sink = Answer::new(host, asked.query.to_bytes().len(), most, &mut kept);
    let sent = asked.sent(alone, host);
    let ended = match answered(alone, host, &sent, &mut sink).await {
        Ok(_) => alone.settle(host).await,
        Err(error) => Err(error),
    };
    let (began, came) = (host.now(), sink.came);
    let opened = kept.opener.map(AnswerOpener::finish);
    let opened = match (ended, opened) {
        // Whatever ended it: what came may have failed its check.
        (Err(error), opened) => match opened.and_then(failed) {
            Some(failed) => Err(failed),
            None => return Err(error),
        },
        (Ok(()), Some(opened)) => opened,
        (Ok(()), None) => return Err(alone.too_fast()),
    };
    match opened {
        Ok(opened) => {
            alone.note(&sent, came);
            let ms = Some((kept.spent + host.now().saturating_sub(began)).as_secs_f64() * 1e3);
            host.progress(Progress { phase: "open", done: came, total: Some(came), ms });
            Ok(opened)
        }
        Err(error) => Err(alone.checked(host, error).await),
    }
}
