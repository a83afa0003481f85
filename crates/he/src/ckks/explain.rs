//! A parameter set in words: its sizes and the reasons for them.

use super::depth::transforms;
use super::noise::Noise;
use super::params::Params;
use crate::params::{TAIL_DEVIATIONS, max_log_modulus};

impl Params {
    /// The parameters in words: sizes, security, precision, and how they were chosen.
    pub fn explain(&self) -> String {
        let spec = self.spec();
        let (degree, bits) = (self.degree(), self.log_key_modulus());
        let limit = max_log_modulus(degree, spec.security).unwrap_or(0);
        let noise = Noise::public_key(self.expansion());
        let error = noise.std * self.expansion().sqrt() / self.scale(self.max_level());
        let security = if self.is_insecure() {
            "INSECURE, for tests only".to_owned()
        } else {
            format!("{}, limit {limit}", spec.security.as_str())
        };
        let widths = match self.stages() {
            [] => format!("{} bits", spec.scale_bits),
            _ => format!("their own bits ({})", self.chain().widths.describe().trim_start()),
        };
        let mut text = format!(
            "{} ring of degree 2^{} with {} slots; {} levels of {} on a base prime of {} bits, \
             {} special prime(s) of {} bits; log2(QP) = {bits} ({security}); {} digit(s) of \
             {} prime(s), {} transforms a rotation; a fresh ciphertext's error is about 2^{:.1} \
             in a slot and below 2^{:.1}",
            spec.ring.as_str(),
            spec.log_degree,
            self.max_slots(),
            spec.levels,
            widths,
            spec.base_bits,
            spec.special_primes,
            spec.special_bits,
            spec.digits,
            spec.digit_primes(),
            transforms(spec),
            error.log2(),
            (error * TAIL_DEVIATIONS).log2(),
        );
        if let Some(why) = self.why.as_deref() {
            text.push_str("; chosen for ");
            text.push_str(why);
        }
        text
    }
}
