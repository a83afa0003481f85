//! The client of strategies token by token: it encrypts the indices of documents, and decrypts the
//! rows that they name or sums of them.

use super::answer::{Group, TokensAnswer};
use super::sender::{Head, Sender, Standard};
use crate::error::{Error, Result};
use crate::lookup::documents::{Documents, row_of};
use crate::lookup::serialize::expect_key;
use crate::lookup::{Pooling, Recipe, Spec, Transport};
use crate::protect::aead::{AeadKey, associated_data};
use ciphervec_arith::parallel::*;
use ciphervec_he_secret::ckks::SecretKey;
use ciphervec_he_secret::keys::{MasterKey, Purpose, random_bytes};
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::wire::{KeyId, Reader};
use zeroize::{Zeroize, Zeroizing};

/// The keys of a client.
pub(in crate::lookup) struct TokensClient {
    recipe: Recipe,
    secret: SecretKey,
    memo: AeadKey,
}

/// Where documents begin and end and which tokens are padding: sealed, it travels with the query
/// and comes back.
struct Memo {
    lengths: Vec<usize>,
    padding: Vec<bool>,
}

impl TokensClient {
    pub fn new(id: &[u8; 16], master: &MasterKey, recipe: Recipe) -> Self {
        let seed = master.derive(Purpose::QueryKey, &[id]);
        let secret = SecretKey::from_seed(recipe.params(), seed.expose());
        let memo = AeadKey::new(*master.derive(Purpose::Aead, &[id]).expose());
        TokensClient { recipe, secret, memo }
    }

    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    pub fn keys(&self, spec: &Spec) -> Result<Option<Vec<u8>>> {
        self.sender().keys((spec, &self.recipe), &self.secret)
    }

    /// Every token a slot, batch after batch; of each batch the ciphertexts of every table.
    pub fn query(&self, spec: &Spec, key: KeyId, documents: &Documents<'_>) -> Result<Vec<u8>> {
        let nonce = SegmentId(random_bytes()?);
        let memo = self.seal_memo(nonce, spec, documents)?;
        let head = Head { key, nonce, memo: &memo };
        self.sender().query((spec, &self.recipe), &self.secret, &head, documents)
    }

    fn sender(&self) -> &dyn Sender {
        match self.recipe.compact_layout() {
            Some(compact) => &**compact,
            None => &Standard,
        }
    }

    pub fn decode(&self, spec: &Spec, key: KeyId, answer: &[u8]) -> Result<Vec<f64>> {
        let answer = TokensAnswer::from_bytes(spec, &self.recipe, answer)?;
        expect_key(key, answer.key)?;
        let memo = self.open_memo(answer.nonce, answer.memo)?;
        let (batch, columns) = (self.recipe.batch(), spec.columns());
        let tokens = memo.padding.len();
        if answer.batches.len() != tokens.div_ceil(batch) {
            let (expected, actual) = (tokens.div_ceil(batch), answer.batches.len());
            let detail = format!("{expected} batches were asked for, the answer has {actual}");
            return Err(Error::Lookup { operation: "decode", detail });
        }
        let mut rows = vec![0.0; tokens * columns];
        for (first, groups) in answer.batches.iter().enumerate() {
            let opened = groups.par_iter().map(|group| self.open(group));
            let opened = opened.collect::<Result<Vec<_>>>()?;
            for (column, values) in opened.iter().flatten().enumerate() {
                let rows = rows[first * batch * columns..].chunks_exact_mut(columns);
                rows.zip(values).for_each(|(row, value)| row[column] = *value);
            }
        }
        let padded = rows.chunks_exact_mut(columns).zip(&memo.padding);
        padded.filter(|(_, padding)| **padding).for_each(|(row, _)| row.fill(0.0));
        Ok(pooled(rows, &memo, (columns, spec.pooling())))
    }

    /// The numbers of each column of a group.
    fn open(&self, group: &Group<'_>) -> Result<Vec<Vec<f64>>> {
        let plain =
            self.secret.decrypt(&group.ciphertext(self.recipe.params(), self.secret.key_id())?)?;
        let values = plain.decode_complex();
        let part = |(at, scale): (usize, &f64)| -> Vec<f64> {
            values.iter().map(|value| [value.re, value.im][at] / scale).collect()
        };
        Ok(group.scales.iter().enumerate().map(part).collect())
    }

    fn seal_memo(
        &self,
        nonce: SegmentId,
        spec: &Spec,
        documents: &Documents<'_>,
    ) -> Result<Vec<u8>> {
        let tokens = documents.tokens();
        let one = spec.transport() == Transport::Compact && spec.pooling() == Pooling::None;
        // Where every row is wanted a token is a document: their lengths would be as many bytes as
        // compact transport takes for an index.
        let lengths: Vec<usize> = match one {
            true => vec![tokens],
            false => (0..documents.len()).map(|at| documents.range(at).len()).collect(),
        };
        let room = 4 + 4 * lengths.len() + tokens.div_ceil(8);
        let mut plain = Zeroizing::new(Vec::with_capacity(room));
        plain.extend_from_slice(&(lengths.len() as u32).to_le_bytes());
        for length in lengths {
            plain.extend_from_slice(&(length as u32).to_le_bytes());
        }
        let mut bits = vec![0u8; tokens.div_ceil(8)];
        for token in 0..tokens {
            let padding = row_of(documents.token(token)[0]).is_none();
            bits[token / 8] |= u8::from(padding) << (token % 8);
        }
        plain.extend_from_slice(&bits);
        bits.zeroize();
        Ok(self.memo.seal("the memo of a query", &place(nonce), &plain)?)
    }

    fn open_memo(&self, nonce: SegmentId, sealed: &[u8]) -> Result<Memo> {
        let plain = self.memo.open("the memo of a query", &place(nonce), sealed)?;
        let mut reader = Reader::new("the memo of a query", &plain);
        let count = reader.u32()? as usize;
        let lengths = reader.take(count.saturating_mul(4))?.as_chunks::<4>().0;
        let lengths: Vec<usize> =
            lengths.iter().map(|length| u32::from_le_bytes(*length) as usize).collect();
        let tokens: usize = lengths.iter().sum();
        let bits = reader.take(tokens.div_ceil(8))?;
        let padding = (0..tokens).map(|token| bits[token / 8] >> (token % 8) & 1 == 1).collect();
        reader.finish()?;
        Ok(Memo { lengths, padding })
    }
}

/// Rows of `columns` numbers, summed or averaged over the tokens of a document that are no padding.
fn pooled(rows: Vec<f64>, memo: &Memo, (columns, pooling): (usize, Pooling)) -> Vec<f64> {
    if pooling == Pooling::None {
        return rows;
    }
    let mut out = vec![0.0; memo.lengths.len() * columns];
    let mut first = 0;
    for (sums, length) in out.chunks_exact_mut(columns).zip(&memo.lengths) {
        let tokens = first..first + length;
        for row in rows[tokens.start * columns..tokens.end * columns].chunks_exact(columns) {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        let counted = memo.padding[tokens].iter().filter(|padding| !**padding).count();
        if pooling == Pooling::Mean {
            sums.iter_mut().for_each(|sum| *sum /= counted.max(1) as f64);
        }
        first += length;
    }
    out
}

fn place(nonce: SegmentId) -> Vec<u8> {
    associated_data("ciphervec v1 lookup memo", &[&nonce.0])
}
