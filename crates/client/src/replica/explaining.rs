//! What one question costs and shows a server, in figures and in words.

use std::fmt::{self, Display, Formatter};

use ciphervec_owner::Mode;

use crate::clusters::table::Clustering;
use crate::replica::Replica;
use crate::replica::traffic::Traffic;

/// Clusters in use, as questions ask about them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoutingCost {
    /// In all.
    pub clusters: usize,
    /// Rows of each, padding included.
    pub rows_each: usize,
    /// Clusters that a question is about.
    pub probes: usize,
    /// Others that it names beside them.
    pub decoys: usize,
    /// Rows of all clusters that nobody put in, or that were deleted since.
    pub padding: usize,
    /// The share of the ten nearest rows that the probes found, measured when the rows were clustered.
    pub recall: f64,
}

/// What one question costs and shows a server; for people by [`Display`].
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Rows that count.
    pub rows: usize,
    /// Rows that a question scans: of clusters and decoys, padding included, and the unrouted ones.
    pub rows_scanned: usize,
    /// Whether the collection is to be clustered.
    pub routed: bool,
    /// None where nothing is clustered.
    pub routing: Option<RoutingCost>,
    /// Rows that every question scans: all of them, or those that came or were changed since the rows were clustered.
    pub unrouted: usize,
    /// None before the first lone question.
    pub traffic: Option<Traffic>,
    /// Questions whose half of the answer is here already, and the bytes of these halves.
    pub tokens: (usize, usize),
    /// What a question shows the server beside sizes and times.
    pub leak: String,
}

impl Replica {
    pub fn explain(&self) -> Explanation {
        let table = self.routing.table.as_ref();
        let active = table.and_then(|table| table.active.as_ref());
        let dead: usize = table.map_or(0, |table| table.dead.values().map(|rows| rows.len()).sum());
        let routing = active.map(|active| RoutingCost {
            clusters: active.count(),
            rows_each: active.rows as usize,
            probes: active.probes as usize,
            decoys: active.named() - active.probes as usize,
            padding: active.padding() + dead,
            recall: active.recall,
        });
        let fresh = self.fresh();
        let counted = fresh.iter().filter(|one| !self.reasons.contains_key(&one.id));
        // What a server lists may be any number.
        let unrouted = counted.fold(0usize, |sum, one| sum.saturating_add(one.rows as usize));
        let scanned = |active: &Clustering| {
            if self.is_oblivious() { active.count() } else { active.named() }
        };
        let named = active.map_or(0, |active| scanned(active) * active.rows as usize);
        Explanation {
            rows: self.directory.len(),
            rows_scanned: unrouted.saturating_add(named),
            routed: self.description.routing.is_some(),
            routing,
            unrouted,
            traffic: self.traffic,
            tokens: (self.tokens.len(), self.tokens.byte_len()),
            leak: leak(self.description.spec.mode(), active, self.is_oblivious()),
        }
    }
}

fn leak(mode: Mode, active: Option<&Clustering>, oblivious: bool) -> String {
    let Some(active) = active else {
        let hidden = matches!(mode, Mode::Sealed | Mode::SealedQuery);
        let shown = if hidden { "nothing of the question" } else { "the question" };
        return format!("{shown}; every segment is touched");
    };
    if oblivious {
        return "nothing of the question, and nothing of which clusters it is about: all of them are scanned, and the answer is as long \
                for any. Reading documents, metadata or vectors of hits by segments or rows shows a server their clusters; by default they \
                are fetched in private, or all of them are read"
            .to_owned();
    }
    let (probes, named, all) = (active.probes as usize, active.named(), active.count());
    let hides = match named - probes {
        0 => format!("the {probes} clusters of a question, of {all}: there are no decoys"),
        decoys => format!(
            "one question hides its {probes} clusters among the {named} of {all} that it names, in fixed secret groups of {}, always \
             whole: a server to which all clusters are equally likely takes one of these for real with odds {probes} to {decoys}, one to \
             which a cluster is w times as likely as another with w times the odds, and no number of related questions tells which of a \
             group is the real one",
            active.size()
        ),
    };
    let beside = match mode {
        Mode::SealedQuery => {
            "; the server can compute the centroids from its rows, and so learns where each question lies, to the precision of a cluster"
        }
        _ => "",
    };
    format!(
        "{hides}. The real clusters are always among them: repeated and related questions share groups, and so show that they are \
         related. There is no ε that bounds this{beside}. Reading documents, metadata or vectors of hits from a server shows their \
         clusters, unless they are held here"
    )
}

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let scanned = format!("{} rows scanned for {}", self.rows_scanned, self.rows);
        match &self.routing {
            None if !self.routed => writeln!(f, "not routed: {scanned}")?,
            None => writeln!(f, "routed, and not clustered yet: {scanned}; call recluster()")?,
            Some(routing) => {
                let share = self.rows as f64 / self.rows_scanned.max(1) as f64;
                writeln!(
                    f,
                    "{} clusters of {} rows, {} of all of these padding",
                    routing.clusters, routing.rows_each, routing.padding
                )?;
                let fewer =
                    if share > 1.0 { format!(", {share:.1} times fewer") } else { String::new() };
                writeln!(
                    f,
                    "one question: {} clusters, {} decoys and {} unrouted rows: {scanned}{fewer}",
                    routing.probes, routing.decoys, self.unrouted
                )?;
                writeln!(f, "recall@10 when it was clustered: {:.4}", routing.recall)?;
            }
        }
        if let Some(Traffic { up, down, ahead }) = self.traffic {
            let ahead = match ahead {
                0 => String::new(),
                ahead => format!(", and {ahead} ahead of it by a token"),
            };
            writeln!(f, "bytes of a question: {up}; of its answer: {down}{ahead}")?;
        }
        if self.tokens.0 > 0 {
            writeln!(
                f,
                "tokens: {}, for a question each, of {} bytes",
                self.tokens.0, self.tokens.1
            )?;
        }
        write!(f, "shown to the server: {}", self.leak)
    }
}
