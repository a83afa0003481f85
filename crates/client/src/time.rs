//! Times as people read them, in UTC, without a calendar of the system's.

/// The minute of a time in seconds since 1970.
pub fn minute(seconds: u64) -> String {
    let (days, minutes) = (seconds / 86_400, seconds / 60 % 1440);
    // Years that begin in March, in cycles of 400 (Hinnant, "chrono-compatible low-level date algorithms").
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    let year = cycle * 400 + year;
    format!("{year:04}-{month:02}-{date:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// Seconds since 1970 of a date of HTTP's, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn http_date(text: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let (_, rest) = text.split_once(", ")?;
    let mut parts = rest.split(' ');
    let [day, month, year, clock, zone] =
        core::array::from_fn(|_| parts.next().unwrap_or_default());
    let month = MONTHS.find(month).filter(|at| month.len() == 3 && at % 3 == 0)? as u64 / 3;
    let mut clock = clock.split(':').map(|part| part.parse::<u64>().ok());
    let [hour, minute, second] = [clock.next()??, clock.next()??, clock.next()??];
    let (day, year) = (day.parse::<u64>().ok()?, year.parse::<u64>().ok()?);
    if zone != "GMT"
        || !(1970..10_000).contains(&year)
        || day == 0
        || day > 31
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    // Years that begin in March (Hinnant, as below).
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_those_of_the_calendar() {
        // RFC 9110, section 5.6.7; the others from `date -u -d @N`.
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date("Tue, 29 Feb 2000 00:00:00 GMT"), Some(951_782_400));
        for wrong in [
            "",
            "soon",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 anF 1994 08:49:37 GMT",
            "Sun, 0 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:18446744073709551615:37 GMT",
            "Sun, 06 Nov 1994 08:49:18446744073709551615 GMT",
        ] {
            assert_eq!(http_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn minutes_are_those_of_the_calendar() {
        // From `date -u -d @N`.
        for (seconds, expected) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_700_000_000, "2023-11-14 22:13 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(minute(seconds), expected);
        }
        assert!(!minute(u64::MAX).is_empty());
    }
}
