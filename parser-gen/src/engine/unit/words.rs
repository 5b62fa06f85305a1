//! Random words that a unit draws for a packet: the decision function, as tables indexed by the bytes of its input.

use super::Needs;
use crate::writer::Writer;

pub(super) fn variables(needs: &Needs<'_>, w: &mut Writer) {
    needs.variable(w, "bit<32>", "mixed");
    if let Some(key) = needs.key() {
        key.write_state(needs.dialect.0, "", false, w);
    }
    for word in &needs.words {
        needs.variable(w, "draw_t", &word.to_string());
    }
    needs.variable(w, "bit<16>", "d");
    if needs.dialect.is_tna() {
        for word in &needs.words {
            for table in 0..6 {
                needs.variable(w, "draw_t", &format!("{word}{table}"));
            }
        }
        for table in 0..4 {
            needs.variable(w, "bit<16>", &format!("d{table}"));
        }
    }
}

/// Writes the six tables of the decision function, one per input byte; the XOR of their results is the drawn words.
pub(super) fn tables(needs: &Needs<'_>, w: &mut Writer) {
    for table in 0..6 {
        let (key, derives) = match table {
            0..4 => (format!("mixed[{}:{}]", 8 * table + 7, 8 * table), true),
            _ => (
                format!("d[{}:{}]", 8 * (table - 4) + 7, 8 * (table - 4)),
                false,
            ),
        };
        let mut parameters: Vec<String> = needs
            .words
            .iter()
            .map(|word| format!("draw_t {word}_"))
            .collect();
        let mut names: Vec<String> = needs.words.iter().map(char::to_string).collect();
        if derives {
            parameters.push("bit<16> d_".to_owned());
            names.push("d".to_owned());
        }
        w.open(format!("action words{table}({})", parameters.join(", ")));
        for name in names {
            w.line(match needs.dialect.is_tna() {
                true => format!("{name}{table} = {name}_;"),
                false => format!("{name} = {name} ^ {name}_;"),
            });
        }
        w.close();
        w.open(format!("table t{table}"));
        w.open("key =");
        w.line(format!("{key}: exact @name(\"byte\");"));
        w.close();
        w.line(format!("actions = {{ words{table}; NoAction; }}"));
        w.line("const default_action = NoAction();");
        w.line("size = 256;");
        w.close();
    }
    if needs.dialect.is_tna() {
        folds(needs, w);
    }
}

/// Declares XOR operations in Tofino's hash units, which combine the results of the six tables in one stage.
fn folds(needs: &Needs<'_>, w: &mut Writer) {
    let mut fold = |name: &str, parts: usize| {
        let list: Vec<String> = (0..parts).map(|part| format!("{name}{part}")).collect();
        w.line(format!("Hash<bit<16>>(HashAlgorithm_t.XOR16) xor_{name};"));
        w.open(format!("action fold_{name}()"));
        w.line(format!(
            "{name} = xor_{name}.get({{ {} }});",
            list.join(", ")
        ));
        w.close();
    };
    fold("d", 4);
    for word in &needs.words {
        fold(&word.to_string(), 6);
    }
}

/// Writes statements that draw the packet's random words.
pub(super) fn draw(needs: &Needs<'_>, w: &mut Writer) {
    if let Some(key) = needs.key() {
        key.write(needs.dialect.0, "", "mixed", w);
        w.line("mixed = mixed ^ key_;");
    } else if needs.dialect.is_tna() {
        w.line("mix();");
    } else {
        let turns = needs.turns();
        w.open("@atomic");
        w.line(needs.read(turns, "mixed"));
        w.line(needs.write(turns, "mixed + 1"));
        w.close();
        // The fingerprint of the key contains the flow's key already.
        let of = needs.keyed().map_or("key_", |_| "print");
        w.line(format!("mixed = mixed ^ {of};"));
    }
    w.line("t0.apply();");
    w.line("t1.apply();");
    w.line("t2.apply();");
    w.line("t3.apply();");
    if needs.dialect.is_tna() {
        w.line("fold_d();");
    }
    w.line("t4.apply();");
    w.line("t5.apply();");
    if needs.dialect.is_tna() {
        for word in &needs.words {
            w.line(format!("fold_{word}();"));
        }
    }
}
