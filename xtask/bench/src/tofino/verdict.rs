//! Resources that bf-p4c placed, read from its output files. Exit status 0 of bf-p4c does not mean that a
//! program fits: it also places more stages than a chip has, and longer parsers. So this file counts them.

use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;

/// Number of rows that one parser of a Tofino has.
pub const PARSER_ROWS: u64 = 256;

/// Resources of the chip that one program takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    pub ingress_stages: u64,
    pub egress_stages: u64,
    /// Number of stages that the chip has.
    pub chip_stages: u64,
    /// Number of rows of the program's largest ingress parser.
    pub ingress_rows: u64,
    /// Number of rows of the program's largest egress parser.
    pub egress_rows: u64,
    /// Number of logical tables.
    pub tables: u64,
    /// Number of SRAM blocks.
    pub sram: u64,
    /// Number of TCAM blocks.
    pub tcam: u64,
    pub map_rams: u64,
    /// Number of meter ALUs and stateful ALUs.
    pub alus: u64,
    /// Number of hash distribution units.
    pub hash_units: u64,
    /// Number of bytes of the exact-match crossbars.
    pub exact_bytes: u64,
    /// Number of bytes of the ternary-match crossbars.
    pub ternary_bytes: u64,
    /// Number of bits of the packet header vector's containers that hold a field.
    pub phv_bits: u64,
}

impl Verdict {
    /// Whether the chip can hold the program.
    pub fn fits(&self) -> bool {
        self.ingress_stages.max(self.egress_stages) <= self.chip_stages
            && self.ingress_rows.max(self.egress_rows) <= PARSER_ROWS
    }

    /// Share of one fault in each resource of the chip except stages; `none` has the resources of this program without faults.
    pub fn shares_per_fault(
        &self,
        none: &Verdict,
        faults: u64,
        phv_available: u64,
    ) -> Vec<(&'static str, f64)> {
        type ResourceCount = fn(&Verdict) -> u64;
        // The numbers are per stage.
        let kinds: [(&str, ResourceCount, u64); 8] = [
            ("logical tables", |v| v.tables, 16),
            ("SRAM", |v| v.sram, 80),
            ("TCAM", |v| v.tcam, 24),
            ("map RAMs", |v| v.map_rams, 48),
            ("meter, stateful ALUs", |v| v.alus, 4),
            ("hash distribution", |v| v.hash_units, 6),
            ("exact crossbar", |v| v.exact_bytes, 128),
            ("ternary crossbar", |v| v.ternary_bytes, 66),
        ];
        let share = |count: ResourceCount, available: u64| {
            let more = count(self) as f64 - count(none) as f64;
            more / faults as f64 / available as f64
        };
        let mut shares: Vec<(&str, f64)> = kinds
            .into_iter()
            .map(|(name, count, available)| (name, share(count, available * self.chip_stages)))
            .collect();
        shares.push(("PHV", share(|v| v.phv_bits, phv_available)));
        shares
    }

    /// Reads the program's resources from the compiler's output folder.
    pub fn read(folder: &Path) -> Result<Verdict> {
        let logs = folder.join("pipe/logs");
        let resources = json(&logs.join("resources.json"))?;
        let containers = json(&logs.join("phv.json"))?;
        let assembly = std::fs::read_dir(folder.join("pipe"))
            .with_context(|| format!("nothing in {}", folder.display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|extension| extension == "bfa"))
            .with_context(|| format!("no assembly in {}", folder.display()))?;
        let assembly = std::fs::read_to_string(&assembly)
            .with_context(|| format!("cannot read {}", assembly.display()))?;
        Verdict::from_logs(&resources["resources"], &containers, &assembly)
            .with_context(|| format!("{} is not what bf-p4c writes", logs.display()))
    }

    /// Counts the program's resources in the compiler's logs and assembly; `None` if a part of them is missing.
    fn from_logs(resources: &Value, containers: &Value, assembly: &str) -> Option<Verdict> {
        let mau = &resources["mau"];
        let mut verdict = Verdict {
            ingress_stages: stages(assembly, "ingress"),
            egress_stages: stages(assembly, "egress"),
            chip_stages: mau["nStages"].as_u64()?,
            ..Verdict::default()
        };
        for parser in resources["parser"]["parsers"].as_array()? {
            let rows = parser["states"].as_array()?.len() as u64;
            let most = match parser["gress"].as_str()? {
                "ingress" => &mut verdict.ingress_rows,
                _ => &mut verdict.egress_rows,
            };
            *most = rows.max(*most);
        }
        for stage in mau["mau_stages"].as_array()? {
            let count = |path: [&str; 2]| {
                let items = stage[path[0]][path[1]].as_array();
                items.map(|items| items.len() as u64)
            };
            verdict.tables += count(["logical_tables", "ids"])?;
            verdict.sram += count(["rams", "srams"])?;
            verdict.tcam += count(["tcams", "tcams"])?;
            verdict.map_rams += count(["map_rams", "maprams"])?;
            verdict.alus += count(["meter_alus", "meters"])?;
            verdict.hash_units += count(["hash_distribution_units", "units"])?;
            for byte in stage["xbar_bytes"]["bytes"].as_array()? {
                match byte["byte_type"].as_str()? {
                    "exact" => verdict.exact_bytes += 1,
                    _ => verdict.ternary_bytes += 1,
                }
            }
        }
        for container in containers["containers"].as_array()? {
            let is_used = container["slices"]
                .as_array()
                .is_some_and(|slices| !slices.is_empty());
            if is_used {
                verdict.phv_bits += container["bit_width"].as_u64()?;
            }
        }
        Some(verdict)
    }
}

/// Number of stages of this gress (ingress or egress) in the compiler's assembly.
fn stages(assembly: &str, gress: &str) -> u64 {
    let is_stage = |line: &&str| {
        let mut words = line.split([' ', ':']).filter(|word| !word.is_empty());
        words.next() == Some("stage") && words.nth(1) == Some(gress)
    };
    assembly.lines().filter(is_stage).count() as u64
}

fn json(path: &Path) -> Result<Value> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resources(rows: usize) -> Value {
        json!({
            "parser": {"parsers": [
                {"gress": "ingress", "states": vec![0; rows]},
                {"gress": "egress", "states": vec![0; 7]},
            ]},
            "mau": {"nStages": 2, "mau_stages": [{
                "logical_tables": {"ids": [1, 2, 3]},
                "rams": {"srams": [1]},
                "tcams": {"tcams": [1, 2]},
                "map_rams": {"maprams": []},
                "meter_alus": {"meters": [1]},
                "hash_distribution_units": {"units": []},
                "xbar_bytes": {"bytes": [{"byte_type": "exact"}, {"byte_type": "ternary"}]},
            }]},
        })
    }

    #[test]
    fn placed_resources_are_counted() {
        let containers = json!({"containers": [
            {"bit_width": 32, "slices": [1]},
            {"bit_width": 16, "slices": []},
            {"bit_width": 8},
        ]});
        let assembly = "stage 0 ingress:\n  x\nstage 1 ingress:\nstage 0 egress:\n stage\n";
        let verdict = Verdict::from_logs(&resources(256), &containers, assembly).unwrap();
        assert_eq!(
            verdict,
            Verdict {
                ingress_stages: 2,
                egress_stages: 1,
                chip_stages: 2,
                ingress_rows: 256,
                egress_rows: 7,
                tables: 3,
                sram: 1,
                tcam: 2,
                map_rams: 0,
                alus: 1,
                hash_units: 0,
                exact_bytes: 1,
                ternary_bytes: 1,
                phv_bits: 32,
            }
        );
        assert!(verdict.fits());
        let none = Verdict {
            tables: 1,
            phv_bits: 0,
            ..verdict.clone()
        };
        let shares = verdict.shares_per_fault(&none, 8, 64);
        // Two more tables, of 32 in two stages.
        assert_eq!(shares[0], ("logical tables", 2.0 / 8.0 / 32.0));
        assert_eq!(shares[8], ("PHV", 32.0 / 8.0 / 64.0));
        assert!(shares[1..8].iter().all(|(_, share)| *share == 0.0));
        let rows = Verdict::from_logs(&resources(257), &containers, assembly).unwrap();
        assert!(!rows.fits());
        let deeper = format!("{assembly}stage 2 ingress:\n");
        assert!(
            !Verdict::from_logs(&resources(9), &containers, &deeper)
                .unwrap()
                .fits()
        );
    }

    #[test]
    fn other_files_have_no_verdict() {
        assert_eq!(Verdict::from_logs(&json!({}), &json!({}), ""), None);
    }
}
