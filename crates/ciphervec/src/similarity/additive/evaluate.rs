//! Scores plain probes against encrypted vectors, for the server, which holds the public key.

use super::layout::{Layout, MASK_BITS, Packing};
use super::quantize::Probes;
use super::scores::EncryptedScores;
use super::slots;
use super::vectors::EncryptedVectors;
use crate::error::Result;
use ciphervec_he::additive::{Evaluate, Messages, Table};
use ciphervec_he::random;
use rayon::prelude::*;
use zeroize::Zeroize;

/// What happens to results before they are returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rerandomization {
    /// Fresh noise on every result, so that it shows nothing of how it came about; what lies beside
    /// a horizontal score is hidden under random numbers.
    #[default]
    Fresh,
    /// Neither. Whoever decrypts can tell which ciphertexts were combined and, in layout
    /// `horizontal`, reads products of the vector with shifted probes: only for results that the
    /// key owner computes, or sums on further.
    Bare,
}

impl<T: Table> EncryptedVectors<T> {
    /// The scores of every probe against every vector, re-randomised.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for probes of another description;
    /// [`ciphervec_he::Error::WrongKey`], and [`ciphervec_he::Error::Randomness`].
    pub fn score<P: Evaluate<Table = T>>(
        &self,
        public: &P,
        probes: &Probes,
    ) -> Result<EncryptedScores<T>> {
        self.score_with(public, probes, Rerandomization::Fresh)
    }

    /// The same with a choice of what happens to results before they are returned.
    ///
    /// # Errors
    /// Those of [`Self::score`].
    pub fn score_with<P: Evaluate<Table = T>>(
        &self,
        public: &P,
        probes: &Probes,
        rerandomization: Rerandomization,
    ) -> Result<EncryptedScores<T>> {
        self.expect_key(public)?;
        self.spec.expect_grid("probes", probes.grid())?;
        // The schemes work on the columns of one sum side by side; sums with few columns leave
        // cores free for others.
        let sums = (0..probes.len())
            .into_par_iter()
            .map(|probe| self.sum(public, probes.weights(probe)))
            .collect::<ciphervec_he::Result<Vec<T>>>()?;
        let mut table = beside(sums)?;
        if rerandomization == Rerandomization::Fresh {
            if let Some(masks) = masks(&self.packing, table.columns())? {
                table = public.add_plain(&table, &masks)?;
            }
            public.rerandomise(&mut table)?;
        }
        Ok(EncryptedScores {
            spec: self.spec,
            packing: self.packing,
            key: self.key,
            fill: self.fill.clone(),
            scales: probes.scales().to_vec(),
            table,
        })
    }

    /// One ciphertext a block, in one row.
    fn sum<P: Evaluate<Table = T>>(&self, public: &P, weights: &[i64]) -> ciphervec_he::Result<T> {
        if self.packing.layout() != Layout::Horizontal {
            return sum(public, &self.table, weights, self.blocks());
        }
        let factors = reversed(&self.packing, weights);
        if self.blocks() == 1 {
            public.weighted_sum_wide_along_vartime(&self.table, &factors)
        } else {
            public.weighted_sum_wide_vartime(&self.table, &factors)
        }
    }
}

/// The weighted sum over the rows of a table with a column a block, or over the columns of a lone
/// block.
fn sum<P: Evaluate>(
    public: &P,
    table: &P::Table,
    weights: &[i64],
    blocks: usize,
) -> ciphervec_he::Result<P::Table> {
    if blocks == 1 {
        public.weighted_sum_along_vartime(table, weights)
    } else {
        public.weighted_sum_vartime(table, weights)
    }
}

fn beside<T: Table>(mut tables: Vec<T>) -> ciphervec_he::Result<T> {
    match tables.pop() {
        Some(only) if tables.is_empty() => Ok(only),
        Some(last) => {
            tables.push(last);
            T::beside(&tables.iter().collect::<Vec<_>>())
        }
        None => T::beside(&[]),
    }
}

/// The weights of every row of a horizontal table in reverse order: the product of two integers
/// packed in opposite orders has Σ x_i q_i as its middle coefficient.
fn reversed(packing: &Packing, weights: &[i64]) -> Messages {
    let bits = packing.slot_bits() as usize;
    let (rows, slots) = (packing.rows(), packing.slots());
    let words = (slots * bits).div_ceil(64);
    let mut factors = Messages::zeros(words, rows);
    for (row, weights) in weights.chunks(slots).enumerate() {
        for (at, &weight) in weights.iter().enumerate() {
            slots::add(factors.row_mut(row), weight, (slots - 1 - at) * bits);
        }
    }
    factors
}

/// What hides the neighbours of `count` horizontal scores; `None` where there are none.
///
/// With L what lies below the score, at bits 0 … a, and U what lies above it, from bit b on, a
/// result is L + 2^a s + 2^b U. Added are a number that is uniform on [−2^(a−1), 2^(a−1)), and 2^b
/// times one uniform on a range 2^59 times as wide as that of U. Modulo 2^a the sum is then uniform
/// whatever L was, and what stands at bit b and above is within statistical distance 2⁻⁵⁹ of the
/// noise alone. L plus its noise may leave its range by one: the score that is read is then one
/// unit of the integer grid off, which tells less than the sign of L.
fn masks(packing: &Packing, count: usize) -> Result<Option<Messages>> {
    if packing.layout() != Layout::Horizontal || packing.slots() == 1 {
        return Ok(None);
    }
    let low = packing.middle();
    let high = low + packing.slot_bits() as usize;
    // |U| < 2^(low - 1); U and its noise together stay below 2^(result_bits - 1 - high).
    let high_bits = low + MASK_BITS as usize - 1;
    let mut masks = Messages::zeros(packing.words(), count);
    for index in 0..count {
        let words = masks.row_mut(index);
        random_bits(words, 0..low)?;
        random_bits(words, high..high + high_bits)?;
        // Centred: half of its range comes off each.
        slots::add(words, -1, low - 1);
        slots::add(words, -1, high + high_bits - 1);
    }
    Ok(Some(masks))
}

/// Fills bits `range` with random ones, and leaves the others as they are.
fn random_bits(words: &mut [u64], range: core::ops::Range<usize>) -> Result<()> {
    let mut bytes = vec![0; words.len() * 8];
    random::fill(&mut bytes)?;
    for (at, (word, bytes)) in words.iter_mut().zip(bytes.as_chunks::<8>().0).enumerate() {
        let below = |bit: usize| match bit.saturating_sub(64 * at) {
            0 => 0,
            count if count >= 64 => u64::MAX,
            count => (1 << count) - 1,
        };
        let mask = below(range.end) & !below(range.start);
        *word = *word & !mask | u64::from_le_bytes(*bytes) & mask;
    }
    bytes.zeroize();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;
    use crate::similarity::additive::{GridPrecision, VectorSpec};

    /// Masks change nothing but what they hide, fill it, and leave the score where it is, give or
    /// take one.
    #[test]
    fn masks_hide_the_neighbours_and_only_them() {
        for (precision, bits) in [
            (GridPrecision::Standard, 2047),
            (GridPrecision::High, 2047),
            (GridPrecision::Small, 617),
        ] {
            let spec = VectorSpec::new(512, Metric::Cosine, precision, Layout::Horizontal).unwrap();
            let packing = spec.packing(bits).unwrap();
            let (middle, width) = (packing.middle(), packing.slot_bits());
            let masks = masks(&packing, 64).unwrap().unwrap();
            let mut seen = vec![0u64; packing.words()];
            for index in 0..64 {
                assert!(masks.fits(index, packing.result_bits()));
                // The noise below is centred: it lends to the score what it takes back.
                assert_eq!(slots::read(masks.row(index), middle, width), 0);
                seen.iter_mut().zip(masks.row(index)).for_each(|(seen, word)| *seen |= word);
                let mut words = masks.row(index).to_vec();
                slots::add(&mut words, -12_345, middle);
                slots::add(&mut words, 777, 0);
                slots::add(&mut words, -777, middle + width as usize);
                assert_eq!(slots::read(&words, middle, width), -12_345);
            }
            for bit in
                (0..middle).chain(middle + width as usize..packing.result_bits() as usize - 2)
            {
                assert!(
                    seen[bit / 64] >> (bit % 64) & 1 == 1,
                    "{precision:?}: bit {bit} is never set"
                );
            }
        }
    }

    #[test]
    fn only_horizontal_neighbours_need_masks() {
        for (layout, dimension) in
            [(Layout::Elements, 8), (Layout::Lanes, 8), (Layout::Horizontal, 1)]
        {
            let spec = VectorSpec::new(dimension, Metric::Cosine, GridPrecision::Standard, layout)
                .unwrap();
            assert!(masks(&spec.packing(2047).unwrap(), 3).unwrap().is_none());
        }
    }
}
