//! Prints the results of a collective benchmark in nccl-tests' format.

use std::fmt;

use serde::Serialize;

/// Results of one size, with separate buffers for input and output or with a single buffer.
#[derive(Debug, Clone, Serialize)]
pub struct Timing {
    /// Time in microseconds of the collective and the following barrier.
    pub time_us: f64,
    /// Algorithm bandwidth in GB/s: size divided by time.
    pub algbw_gb_per_s: f64,
    /// Bus bandwidth in GB/s: minimum traffic of the most loaded link divided by time.
    pub busbw_gb_per_s: f64,
    /// Number of wrong elements over all ranks; `None` if results are not checked.
    pub wrong: Option<u64>,
}

/// A line of the table: the results of one size.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Size in bytes.
    pub size: u64,
    /// Number of elements, as nccl-tests counts them.
    pub count: usize,
    #[serde(rename = "type")]
    pub data_type: String,
    pub redop: String,
    /// Root rank; −1 if the collective has none.
    pub root: i64,
    /// Results with separate buffers for input and output.
    #[serde(flatten)]
    pub out_of_place: Timing,
    /// Results with a single buffer for input and output.
    pub in_place: Timing,
    /// Name of the algorithm that ran.
    pub algorithm: &'static str,
    /// Number of tiles into which the schedule cuts the values.
    pub tiles: usize,
}

pub const HEAD: &str = "\
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       ";

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:12}  {:12}  {:>8}  {:>6}  {:>6}  {}  {}",
            self.size,
            self.count,
            self.data_type,
            self.redop,
            self.root,
            self.out_of_place,
            self.in_place
        )
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrong = self
            .wrong
            .map_or("N/A".to_owned(), |wrong| wrong.to_string());
        write!(
            f,
            "{:>7}  {:>6}  {:>6}  {wrong:>5}",
            time(self.time_us),
            bandwidth(self.algbw_gb_per_s),
            bandwidth(self.busbw_gb_per_s),
        )
    }
}

fn time(us: f64) -> String {
    match us {
        us if us >= 10_000.0 => format!("{us:.0}"),
        us if us >= 100.0 => format!("{us:.1}"),
        us => format!("{us:.2}"),
    }
}

/// Formats a bandwidth in GB/s with two decimals, as nccl-tests does, or with four if it is below 1.
fn bandwidth(gb_per_s: f64) -> String {
    match gb_per_s {
        of if of >= 1.0 || of == 0.0 => format!("{of:.2}"),
        of => format!("{of:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned_with_the_header() {
        let out_of_place = Timing {
            time_us: 43_210.9,
            algbw_gb_per_s: 0.024_27,
            busbw_gb_per_s: 1.5,
            wrong: Some(0),
        };
        let row = Row {
            size: 1_048_576,
            count: 262_144,
            data_type: "float".to_owned(),
            redop: "sum".to_owned(),
            root: -1,
            in_place: Timing {
                time_us: 50.25,
                wrong: None,
                ..out_of_place
            },
            out_of_place,
            algorithm: "direct",
            tiles: 1,
        };
        assert_eq!(
            row.to_string(),
            "     1048576        262144     float     sum      -1    43211  0.0243    1.50      0    50.25  0.0243    1.50    N/A"
        );
        let columns = HEAD.lines().nth(1).unwrap();
        assert_eq!(columns.len(), row.to_string().len());
        // The columns that scripts read by number.
        let titles: Vec<&str> = columns.trim_start_matches('#').split_whitespace().collect();
        assert_eq!(titles.len(), row.to_string().split_whitespace().count());
        assert_eq!((titles[7], titles[11]), ("busbw", "busbw"));
    }
}
