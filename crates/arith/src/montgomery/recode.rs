//! Writes small weights in signed digits, of the width that costs fewest multiplications. For the
//! server.

/// Widest digit that is considered.
const MAX_WINDOW: u32 = 12;

/// Signed digits of all weights, least significant first: `digits[j][i]` in `[-2^(w-1), 2^(w-1)]`.
pub(super) struct Recoded {
    pub window: u32,
    pub digits: Vec<Vec<i16>>,
    /// Multiplications of eight lanes that their product is expected to take.
    pub cost: usize,
}

impl Recoded {
    /// Digits of the width for which `cost` multiplications are fewest, of (digits, window).
    pub(super) fn new(weights: &[i64], cost: impl Fn(usize, u32) -> usize) -> Recoded {
        let largest = weights.iter().map(|w| w.unsigned_abs()).max().unwrap_or(0);
        let of = |window| (cost(positions(largest, window), window), window);
        let (cost, window) = (1..=MAX_WINDOW).map(of).min().unwrap_or((0, 1));
        let mut digits = vec![vec![0i16; weights.len()]; positions(largest, window)];
        for (index, &weight) in weights.iter().enumerate() {
            let (sign, mut rest) = (weight.signum() as i16, u128::from(weight.unsigned_abs()));
            for digits in &mut digits {
                let digit = signed_digit(&mut rest, window);
                digits[index] = sign * digit;
            }
        }
        Recoded { window, digits, cost }
    }

    /// Buckets of a digit position and a sign.
    pub fn buckets(&self) -> usize {
        1 << (self.window - 1)
    }
}

/// Takes the lowest digit off `rest`.
fn signed_digit(rest: &mut u128, window: u32) -> i16 {
    let low = (*rest & ((1 << window) - 1)) as i16;
    let digit = if low > 1 << (window - 1) { low - (1 << window) } else { low };
    *rest = (*rest >> window) + u128::from(digit < 0);
    digit
}

/// Digits that `largest` and anything below it need: `c` digits reach
/// `2^(w-1) (1 + 2^w + ... + 2^(w(c-1)))`.
fn positions(largest: u64, window: u32) -> usize {
    let (mut reach, mut count) = (0u128, 0);
    while reach < u128::from(largest) {
        reach = (reach << window) + (1 << (window - 1));
        count += 1;
    }
    count
}
