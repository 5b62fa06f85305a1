//! P4 text of a channel that is good or bad (the Gilbert-Elliott loss model): its state, one per register cell.

use super::Needs;
use crate::writer::Writer;

/// Writes the table that decides how the channel's state changes at a packet.
pub(super) fn table(needs: &Needs<'_>, w: &mut Writer) {
    // Name of the action, change of the state, and code of the change.
    let changes = [
        ("turn_bad", "state = 1;", 1),
        ("turn_good", "state = 0;", 2),
        ("turn_over", "state = state ^ 1;", 3),
        ("stay", "", 0),
    ];
    if needs.dialect.is_tna() {
        let (cell, cells) = (needs.cell, needs.cells());
        w.line(format!("Register<bit<8>, {cell}>({cells}, 0) states;"));
        for (name, change, _) in changes {
            w.open(format!(
                "RegisterAction<bit<8>, {cell}, bit<8>>(states) {name}_ ="
            ));
            w.open("void apply(inout bit<8> state, out bit<8> now)");
            if !change.is_empty() {
                w.line(change);
            }
            w.line("now = state;");
            w.close();
            w.close_with(";");
        }
    }
    for (name, _, code) in changes {
        w.line(match needs.dialect.is_tna() {
            true => format!("action {name}() {{ bad = {name}_.execute(cell_); }}"),
            false => format!("action {name}() {{ change = {code}; }}"),
        });
    }
    w.open("table channel");
    w.open("key =");
    w.line("u: range @name(\"u\");");
    w.close();
    let names: Vec<&str> = changes.iter().map(|(name, ..)| *name).collect();
    w.line(format!("actions = {{ {}; NoAction; }}", names.join("; ")));
    w.line("const default_action = NoAction();");
    w.line("size = 8;");
    w.close();
}

/// Writes statements that apply the change of state that the table `channel` decided.
pub(super) fn change(needs: &Needs<'_>, w: &mut Writer) {
    w.open("@atomic");
    w.line(needs.read("states", "bad"));
    w.open("if (change == 1)");
    w.line("bad = 1;");
    w.close_open("else if (change == 2)");
    w.line("bad = 0;");
    w.close_open("else if (change == 3)");
    w.line("bad = bad ^ 1;");
    w.close();
    w.line(needs.write("states", "bad"));
    w.close();
}
