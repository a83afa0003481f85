//! How much a key may publish, and the count of what it has published; a result over the policy's
//! number is refused. Owner only.

use crate::error::{Error, Result};
use crate::wire::Reader;

/// How much a key may publish, and how well it is to be hidden. A key keeps the first policy it is
/// used with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PublishPolicy {
    /// τ: results that the key will ever publish.
    pub uses: u64,
    /// s: log2 of one over the advantage that all of them together give.
    pub statistical_bits: u32,
}

impl Default for PublishPolicy {
    /// 1,024 results, 30 bits.
    fn default() -> Self {
        PublishPolicy { uses: 1024, statistical_bits: 30 }
    }
}

/// What a key has published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Budget {
    /// The policy, once there is one.
    pub policy: Option<PublishPolicy>,
    /// Results published.
    pub used: u64,
}

impl Budget {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let (uses, bits) =
            self.policy.map_or((0, 0), |policy| (policy.uses, policy.statistical_bits));
        let mut out = uses.to_le_bytes().to_vec();
        out.extend(bits.to_le_bytes());
        out.extend(self.used.to_le_bytes());
        out
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (uses, statistical_bits, used) = (reader.u64()?, reader.u32()?, reader.u64()?);
        let policy = match (uses, statistical_bits) {
            (0, 0) => None,
            (1.., 1..=128) => Some(PublishPolicy { uses, statistical_bits }),
            _ => return Err(reader.error(format!("a policy of {uses} uses found"))),
        };
        if used > uses {
            return Err(reader.error(format!("{used} results published of {uses}")));
        }
        Ok(Budget { policy, used })
    }

    /// Keeps to the policy that the key has published under, or begins with this one.
    fn keep(&mut self, policy: PublishPolicy) -> Result<()> {
        let kept = *self.policy.get_or_insert(policy);
        if kept == policy {
            return Ok(());
        }
        Err(Error::Range {
            what: "the publishing policy of a key",
            expected: format!("the one it has published under, {kept:?}"),
            actual: format!("{policy:?}"),
        })
    }

    /// Counts what was published elsewhere under the same key.
    pub(in super::super) fn raise(&mut self, policy: PublishPolicy, used: u64) -> Result<()> {
        self.keep(policy)?;
        self.used = self.used.max(used.min(policy.uses));
        Ok(())
    }

    /// Counts one result.
    pub(in super::super) fn spend(&mut self, policy: PublishPolicy) -> Result<()> {
        self.keep(policy)?;
        if self.used >= policy.uses {
            return Err(Error::Published { allowed: policy.uses, used: self.used });
        }
        self.used += 1;
        Ok(())
    }
}
