//! Muvera: a matrix of tokens as one vector of fixed length, whose inner products with a query's are near MaxSim (Dhulipala and others,
//! "MUVERA: Multi-Vector Retrieval via Fixed Dimensional Encodings", 2024). A function of the tokens' codes and the seed alone, bit for bit
//! the same on every platform: products are whole numbers, and sums of float64 have one order.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::records::matrix::Matrix;

/// What the signs are drawn under.
const CONTEXT: &str = "ciphervec 2026-11-29 signs of fixed dimensional encodings";
/// Numbers of a token's vector at most.
const MAX_WIDTH: u32 = 4_096;
/// Numbers of an encoding before they are folded at most, and signs that are drawn for it.
const MAX_NUMBERS: u64 = 1 << 20;
const MAX_SIGNS: u64 = 1 << 24;
/// The largest seed: JavaScript has no larger whole numbers.
pub const MAX_SEED: u64 = (1 << 53) - 1;

/// How tokens become one vector. In each repetition the signs of `k_sim` random sums of a token's numbers choose one of 2^`k_sim` buckets;
/// a query's bucket is the sum of its tokens, a document's their mean, or the nearest token where none is there; buckets are projected to
/// `d_proj` numbers, put end to end and folded to `dimension`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Muvera {
    /// Numbers of a token's vector.
    pub width: u32,
    /// Signs that choose a bucket.
    pub k_sim: u32,
    /// Independent partitions into buckets.
    pub repetitions: u32,
    /// Numbers that a bucket is projected to; `width` projects nothing.
    pub d_proj: u32,
    /// Numbers of the encoding, which is the vector that is sealed and searched.
    pub dimension: u32,
    /// What signs are drawn from; left out, a random one.
    pub seed: Option<u64>,
}

/// What of a [`Muvera`] may be left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct MuveraOptions {
    /// [`Muvera::k_sim`].
    pub k_sim: Option<u32>,
    /// [`Muvera::repetitions`].
    pub repetitions: Option<u32>,
    /// [`Muvera::d_proj`].
    pub d_proj: Option<u32>,
    /// [`Muvera::dimension`].
    pub dimension: Option<u32>,
    /// [`Muvera::seed`].
    pub seed: Option<u64>,
}

impl Muvera {
    /// Of vectors of `width` numbers. Left out, `k_sim` is 2, there are 20 repetitions, `d_proj` is 32, or `width` where that is less, and
    /// `dimension` 2,048, or what there is to fold where that is less.
    ///
    /// # Errors
    /// [`Error::Input`] naming what is out of range.
    pub fn new(width: u32, options: MuveraOptions) -> Result<Self> {
        let MuveraOptions { k_sim, repetitions, d_proj, dimension, seed } = options;
        let mut made = Muvera {
            width,
            k_sim: k_sim.unwrap_or(2),
            repetitions: repetitions.unwrap_or(20),
            d_proj: d_proj.unwrap_or(width.min(32)),
            dimension: dimension.unwrap_or(1),
            seed,
        };
        made.check()?;
        made.dimension = dimension.unwrap_or(made.numbers().min(2_048) as u32);
        Ok(made)
    }

    /// That an encoder can be made of it.
    ///
    /// # Errors
    /// [`Error::Input`] naming what is out of range.
    pub(crate) fn check(&self) -> Result<()> {
        let Muvera { width, k_sim, repetitions, d_proj, seed, .. } = *self;
        let range = |what: &str, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Error::input(format!("{what} of multi is {least} to {most}, got {value}."))
        };
        range("width", width.into(), 1, MAX_WIDTH.into())?;
        range("k_sim", k_sim.into(), 0, 8)?;
        range("repetitions", repetitions.into(), 1, 256)?;
        range("d_proj", d_proj.into(), 1, width.into())?;
        range("seed", seed.unwrap_or_default(), 0, MAX_SEED)?;
        range("dimension", self.dimension.into(), 1, self.numbers())?;
        range("repetitions × 2^k_sim × d_proj", self.numbers(), 1, MAX_NUMBERS)?;
        range("repetitions × (k_sim + d_proj) × width", self.signs(), 1, MAX_SIGNS)
    }

    /// Whether this is what was chosen, where a seed that is left out may be any.
    pub(crate) fn suits(self, chosen: Self) -> bool {
        Muvera { seed: self.seed.or(chosen.seed), ..self } == chosen
    }

    /// Of an encoding before it is folded.
    fn numbers(&self) -> u64 {
        (u64::from(self.repetitions) * u64::from(self.d_proj)) << self.k_sim
    }

    fn signs(&self) -> u64 {
        let of_each = u64::from(self.k_sim) + u64::from(self.d_proj);
        u64::from(self.repetitions) * of_each * u64::from(self.width)
    }

    /// Whether buckets are projected, and not kept as they are.
    fn projects(&self) -> bool {
        self.d_proj < self.width
    }

    fn folds(&self) -> bool {
        u64::from(self.dimension) < self.numbers()
    }
}

/// What a vector is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Query,
    Document,
}

/// Makes vectors of matrices. What it draws is drawn once.
#[derive(Debug)]
pub(crate) struct Encoder {
    muvera: Muvera,
    drawn: OnceLock<Drawn>,
}

#[derive(Debug)]
struct Drawn {
    /// −1 and 1: of each repetition `k_sim` rows that choose a bucket, then `d_proj` that project.
    signs: Vec<i16>,
    /// Where each number of the whole encoding goes, and by which sign.
    folds: Vec<(u32, f64)>,
}

impl Encoder {
    /// Of what was checked.
    pub fn new(muvera: Muvera) -> Self {
        Encoder { muvera, drawn: OnceLock::new() }
    }

    pub fn muvera(&self) -> Muvera {
        self.muvera
    }

    /// Numbers of a token's vector.
    pub fn width(&self) -> usize {
        self.muvera.width as usize
    }

    fn drawn(&self) -> &Drawn {
        self.drawn.get_or_init(|| {
            let Muvera { width, k_sim, repetitions, d_proj, dimension, seed } = self.muvera;
            let mut drawing = blake3::Hasher::new_derive_key(CONTEXT);
            for number in [width, k_sim, repetitions, d_proj, dimension] {
                drawing.update(&number.to_le_bytes());
            }
            let mut drawing =
                drawing.update(&seed.unwrap_or_default().to_le_bytes()).finalize_xof();
            let mut bytes = vec![0u8; (self.muvera.signs() as usize).div_ceil(8)];
            drawing.fill(&mut bytes);
            let sign = |at: usize| 1 - 2 * i16::from(bytes[at / 8] >> (at % 8) & 1);
            let signs = (0..self.muvera.signs() as usize).map(sign).collect();
            let mut folds = Vec::new();
            if self.muvera.folds() {
                let mut words = vec![0u8; 4 * self.muvera.numbers() as usize];
                drawing.fill(&mut words);
                folds.extend(words.as_chunks::<4>().0.iter().map(|word| {
                    let word = u32::from_le_bytes(*word);
                    let place = (u64::from(word >> 1) * u64::from(dimension)) >> 31;
                    (place as u32, if word & 1 == 0 { 1.0 } else { -1.0 })
                }));
            }
            Drawn { signs, folds }
        })
    }

    /// The vector of a matrix.
    pub fn encode(&self, matrix: &Matrix, side: Side) -> Vec<f32> {
        let Muvera { width, k_sim, repetitions, d_proj, dimension, .. } = self.muvera;
        let (width, k_sim, d_proj) = (width as usize, k_sim as usize, d_proj as usize);
        let Drawn { signs, folds } = self.drawn();
        let tokens: Vec<(f64, Vec<i16>)> = matrix
            .each()
            .map(|(scale, codes)| (f64::from(scale), codes.iter().map(|x| i16::from(*x)).collect()))
            .collect();
        let mut whole = Vec::with_capacity(self.muvera.numbers() as usize);
        for signs in signs.chunks_exact((k_sim + d_proj) * width) {
            let (choosing, projecting) = signs.split_at(k_sim * width);
            let bucket = |codes: &[i16]| {
                let bits = choosing.chunks_exact(width).enumerate();
                bits.fold(0usize, |all, (at, signs)| all | usize::from(dot(signs, codes) > 0) << at)
            };
            let projected = |(scale, codes): &(f64, Vec<i16>)| -> Vec<f64> {
                match self.muvera.projects() {
                    true => {
                        let sums = projecting.chunks_exact(width).map(|signs| dot(signs, codes));
                        sums.map(|sum| scale * f64::from(sum)).collect()
                    }
                    false => codes.iter().map(|code| scale * f64::from(*code)).collect(),
                }
            };
            let placed: Vec<(usize, Vec<f64>)> =
                tokens.iter().map(|token| (bucket(&token.1), projected(token))).collect();
            whole.extend(buckets(&placed, 1 << k_sim, d_proj, side));
        }
        let projections = if self.muvera.projects() { f64::from(self.muvera.d_proj) } else { 1.0 };
        let factor = 1.0 / (projections * f64::from(repetitions)).sqrt();
        let folded = match self.muvera.folds() {
            true => {
                let mut folded = vec![0f64; dimension as usize];
                for (number, (place, sign)) in whole.iter().zip(folds) {
                    folded[*place as usize] += sign * number;
                }
                folded
            }
            false => whole,
        };
        folded.iter().map(|number| (number * factor) as f32).collect()
    }
}

/// The buckets of one repetition, end to end.
fn buckets(placed: &[(usize, Vec<f64>)], count: usize, d_proj: usize, side: Side) -> Vec<f64> {
    let mut sums = vec![0f64; count * d_proj];
    let mut filled = vec![0u32; count];
    for (bucket, numbers) in placed {
        filled[*bucket] += 1;
        for (sum, number) in sums[bucket * d_proj..][..d_proj].iter_mut().zip(numbers) {
            *sum += number;
        }
    }
    if side == Side::Query {
        return sums;
    }
    for (bucket, (sums, filled)) in sums.chunks_exact_mut(d_proj).zip(filled).enumerate() {
        if filled > 0 {
            sums.iter_mut().for_each(|sum| *sum /= f64::from(filled));
        } else if let Some((_, nearest)) =
            placed.iter().min_by_key(|(other, _)| (bucket ^ other).count_ones())
        {
            sums.copy_from_slice(nearest);
        }
    }
    sums
}

/// At most 127 × 4,096, so that it is exact.
fn dot(signs: &[i16], codes: &[i16]) -> i32 {
    signs.iter().zip(codes).map(|(sign, code)| i32::from(*sign) * i32::from(*code)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::matrix::Tokens;

    const SMALL: Muvera =
        Muvera { width: 6, k_sim: 2, repetitions: 3, d_proj: 2, dimension: 24, seed: Some(7) };

    fn matrix(values: &[f32]) -> Matrix {
        Matrix::of(&Tokens { width: 6, values: values.to_vec() })
    }

    /// The same in the words of the paper, over one token after the other and with no code of the above but what is drawn.
    fn plain(muvera: Muvera, matrix: &Matrix, side: Side) -> Vec<f64> {
        let encoder = Encoder::new(muvera);
        let Drawn { signs, folds } = encoder.drawn();
        let (width, k_sim, d_proj) =
            (muvera.width as usize, muvera.k_sim as usize, muvera.d_proj as usize);
        let value = |r: usize, row: usize, token: &[f64]| -> f64 {
            let start = (r * (k_sim + d_proj) + row) * width;
            (0..width).map(|i| f64::from(signs[start + i]) * token[i]).sum()
        };
        let tokens: Vec<Vec<f64>> = matrix
            .each()
            .map(|(s, codes)| codes.iter().map(|c| f64::from(s) * f64::from(*c)).collect())
            .collect();
        let mut all = Vec::new();
        for r in 0..muvera.repetitions as usize {
            let code = |token: &[f64]| {
                (0..k_sim).map(|j| usize::from(value(r, j, token) > 0.0) << j).sum::<usize>()
            };
            for bucket in 0..1usize << k_sim {
                let here: Vec<&Vec<f64>> =
                    tokens.iter().filter(|token| code(token) == bucket).collect();
                for p in 0..d_proj {
                    let number = |token: &Vec<f64>| {
                        if d_proj < width {
                            value(r, k_sim + p, token) / f64::from(d_proj as u32).sqrt()
                        } else {
                            token[p]
                        }
                    };
                    let sum: f64 = here.iter().map(|token| number(token)).sum();
                    all.push(match (side, here.len()) {
                        (Side::Query, _) => sum,
                        (Side::Document, 0) => {
                            let far = |token: &Vec<f64>| (code(token) ^ bucket).count_ones();
                            let least = tokens.iter().map(far).min().unwrap();
                            number(tokens.iter().find(|token| far(token) == least).unwrap())
                        }
                        (Side::Document, count) => sum / count as f64,
                    });
                }
            }
        }
        let mut out = vec![0.0; muvera.dimension as usize];
        for (i, number) in all.iter().enumerate() {
            let (place, sign) = folds.get(i).copied().unwrap_or((i as u32, 1.0));
            out[place as usize] += sign * number / f64::from(muvera.repetitions).sqrt();
        }
        out
    }

    #[test]
    fn it_is_what_the_paper_says() {
        let values: Vec<f32> = (0..30u16).map(|i| f32::from(i * 37 % 23) / 11.0 - 1.0).collect();
        let kept = matrix(&values);
        for muvera in [
            SMALL,
            Muvera { dimension: 10, ..SMALL },
            Muvera { d_proj: 6, dimension: 72, ..SMALL },
            Muvera { k_sim: 0, dimension: 6, ..SMALL },
            Muvera { k_sim: 5, dimension: 40, ..SMALL },
        ] {
            muvera.check().unwrap();
            for side in [Side::Query, Side::Document] {
                let found = Encoder::new(muvera).encode(&kept, side);
                for (a, b) in found.iter().zip(plain(muvera, &kept, side)) {
                    assert!((f64::from(*a) - b).abs() < 1e-6, "{muvera:?} {side:?}: {a} {b}");
                }
                assert_eq!(found.len(), muvera.dimension as usize);
            }
        }
    }

    #[test]
    fn one_bucket_and_no_projection_are_the_sum_and_the_mean() {
        let muvera = Muvera { k_sim: 0, repetitions: 1, d_proj: 6, dimension: 6, ..SMALL };
        let kept = matrix(&[127.0, 1.0, 2.0, 3.0, 4.0, 5.0, 127.0, 3.0, 2.0, 1.0, 0.0, -1.0]);
        let encoder = Encoder::new(muvera);
        assert_eq!(encoder.encode(&kept, Side::Query), [254.0, 4.0, 4.0, 4.0, 4.0, 4.0]);
        assert_eq!(encoder.encode(&kept, Side::Document), [127.0, 2.0, 2.0, 2.0, 2.0, 2.0]);
    }

    #[test]
    fn an_encoding_has_the_same_bits_everywhere() {
        // Frozen: a stored row is searched by an encoding of another machine, and of another release.
        let values: Vec<f32> = (0..18u16).map(|i| f32::from(i * 29 % 19) / 9.0 - 1.0).collect();
        let muvera = Muvera { dimension: 5, ..SMALL };
        let found = Encoder::new(muvera).encode(&matrix(&values), Side::Document);
        let bits: Vec<u32> = found.iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, [0x3f0a405f, 0x3f38270d, 0x3f7f1b5a, 0x3f802b9b, 0x3f3af0e1]);
        let one = matrix(&values[..6]);
        let all = Muvera { k_sim: 0, dimension: 6, ..SMALL };
        let of = |side| Encoder::new(all).encode(&one, side);
        assert_eq!(of(Side::Query), of(Side::Document), "one token is its own sum and mean");
    }

    #[test]
    fn what_no_encoder_is_made_of_is_refused() {
        for (wrong, says) in [
            (Muvera { width: 0, ..SMALL }, "width of multi is 1 to 4096, got 0"),
            (Muvera { k_sim: 9, ..SMALL }, "k_sim of multi is 0 to 8, got 9"),
            (Muvera { repetitions: 0, ..SMALL }, "repetitions of multi is 1 to 256, got 0"),
            (Muvera { d_proj: 7, ..SMALL }, "d_proj of multi is 1 to 6, got 7"),
            (Muvera { dimension: 25, ..SMALL }, "dimension of multi is 1 to 24, got 25"),
            (Muvera { seed: Some(1 << 53), ..SMALL }, "seed of multi is 0 to"),
            (
                Muvera {
                    width: 4096,
                    k_sim: 8,
                    repetitions: 256,
                    d_proj: 4096,
                    dimension: 8,
                    seed: None,
                },
                "repetitions × 2^k_sim × d_proj of multi is 1 to 1048576",
            ),
        ] {
            assert!(wrong.check().unwrap_err().to_string().contains(says), "{says}");
        }
    }
}
