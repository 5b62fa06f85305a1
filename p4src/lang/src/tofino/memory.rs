//! Estimates the SRAM, TCAM and map RAM that tables and extern objects use.

use super::expr::width;
use super::limits::{SRAM_BITS, SRAM_ROWS, TCAM_BITS, TCAM_ROWS};
use super::salu;
use crate::ir::{Const, ExternInstance, ExternKind, Program, Table, Type, VarId};

/// Number of memory blocks of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Blocks {
    pub sram: u64,
    pub tcam: u64,
    pub map_ram: u64,
}

/// Number of entries of a table without a `size` property.
const DEFAULT_SIZE: u64 = 512;
/// Key bits that an exact table need not store, because the row (of 1024) implies them.
const GHOST_BITS: u64 = 10;
/// Bits of version per entry in an exact table.
const VERSION_BITS: u64 = 4;
/// Maximum bits of action data that an entry stores; further action data takes separate memory blocks.
const IMMEDIATE_BITS: u64 = 32;

/// The memory blocks of a table.
///
/// Exact: blocks of 128 × 1024 bits, at least one, for the entries: key (minus 10 bits implied by the row), 4 bits of version,
/// number of the action, up to 32 bits of action data. Ternary: ⌈key / 44⌉ × ⌈entries / 512⌉ TCAM blocks (a range counts its
/// bits, though its encoding takes more) and an SRAM block for the result. Further action data takes separate blocks.
pub(super) fn table(program: &Program, control: usize, table: &Table) -> Blocks {
    let key: u64 = table.key.iter().map(|k| width(&k.expr.ty).max(1)).sum();
    if key == 0 {
        return Blocks::default();
    }
    let entries = table
        .size
        .unwrap_or(DEFAULT_SIZE)
        .max(table.entries.len() as u64)
        .max(1);
    // The data of a profile's members is stored in the profile, once for all entries that share a member.
    let data = match has_object(program, table, |kind| {
        matches!(kind, ExternKind::ActionProfile | ExternKind::ActionSelector)
    }) {
        true => 0,
        false => action_data(program, control, table, |_| true),
    };
    if is_algorithmic(program, table) {
        return Blocks {
            sram: 1,
            ..Blocks::default()
        };
    }
    let choice = u64::from(usize::BITS - table.actions.len().saturating_sub(1).leading_zeros());
    let own_data = if data > IMMEDIATE_BITS {
        sram_blocks(entries, data.next_power_of_two())
    } else {
        0
    };
    let exact = table
        .key
        .iter()
        .all(|k| matches!(k.match_kind.as_str(), "exact" | "selector" | "dleft_hash"));
    if exact {
        let beside = if data > IMMEDIATE_BITS { 0 } else { data };
        let bits = key.saturating_sub(GHOST_BITS) + VERSION_BITS + choice + beside;
        return Blocks {
            sram: (entries * bits).div_ceil(SRAM_ROWS * SRAM_BITS).max(1) + own_data,
            ..Blocks::default()
        };
    }
    let tcam = key.div_ceil(TCAM_BITS) * entries.div_ceil(TCAM_ROWS);
    let found = u64::from(choice > 0 || data > 0);
    Blocks {
        sram: found + own_data,
        tcam,
        map_ram: 0,
    }
}

/// Whether a table's entries are found by an algorithm (ALPM or ATCAM) instead of TCAM; the compiler chooses their layout.
pub(super) fn is_algorithmic(program: &Program, table: &Table) -> bool {
    let asked = |name: &str| name.starts_with("alpm") || name.starts_with("atcam");
    table.annotations.iter().any(|a| asked(&a.name))
        || has_object(program, table, |kind| {
            matches!(kind, ExternKind::Alpm | ExternKind::Atcam)
        })
}

/// Whether a property of the table names an extern object of the given kind.
fn has_object(program: &Program, table: &Table, is_kind: impl Fn(&ExternKind) -> bool) -> bool {
    let objects = table
        .properties
        .iter()
        .filter_map(|(_, value)| match value {
            Const::Extern(id) => program.externs.get(id.index()),
            _ => None,
        });
    objects.into_iter().any(|e| is_kind(&e.kind))
}

/// Bits of action data (control-plane arguments) of a table's largest action, counting the parameters that `wanted` accepts.
pub(super) fn action_data(
    program: &Program,
    control: usize,
    table: &Table,
    wanted: impl Fn(VarId) -> bool,
) -> u64 {
    let Some(control) = program.controls.get(control) else {
        return 0;
    };
    let bits = |offered: &crate::ir::TableAction| {
        let action = control.actions.get(offered.action.index())?;
        let own = action
            .params
            .iter()
            .skip(offered.args.len())
            .filter(|p| wanted(p.var));
        Some(
            own.filter_map(|p| control.vars.get(p.var.index()))
                .map(|v| width(&v.ty))
                .sum::<u64>(),
        )
    };
    table.actions.iter().filter_map(bits).max().unwrap_or(0)
}

/// SRAM blocks for entries of `bits` bits, with several entries per row or several rows per entry.
fn sram_blocks(entries: u64, bits: u64) -> u64 {
    entries
        .saturating_mul(bits.max(1))
        .div_ceil(SRAM_ROWS * SRAM_BITS)
        .max(1)
}

/// Memory blocks of a register, counter or meter: those of its cells, and a spare one for a write and a read in one clock. Each
/// has a map RAM. (The NGA prototype's 33 registers of 16,384 words count as 165 map RAMs; bf-p4c reports 167 in all.)
pub(super) fn cells(program: &Program, instance: &ExternInstance) -> Blocks {
    let size = instance.args.iter().find_map(|(_, arg)| match arg {
        Const::Bits { value, .. } => u64::try_from(value).ok(),
        Const::Integer(value) => u64::try_from(value).ok(),
        _ => None,
    });
    let size = size
        .filter(|_| !instance.kind.is_direct())
        .unwrap_or(DEFAULT_SIZE);
    let bits = match &instance.kind {
        ExternKind::Register | ExternKind::DirectRegister => instance
            .type_args
            .first()
            .and_then(|ty| salu::cell(program, ty))
            .map_or(8, |(bits, _)| u64::from(bits)),
        ExternKind::Counter | ExternKind::DirectCounter => match instance.type_args.first() {
            Some(Type::Bit(w)) => u64::from(*w).clamp(32, 64),
            _ => 64,
        },
        _ => SRAM_BITS,
    };
    let blocks = sram_blocks(size, bits) + 1;
    let of_egress = |(name, arg): &(String, Const)| {
        name == "true_egress_accounting" && *arg == Const::Bool(true)
    };
    Blocks {
        // bf-p4c uses fewer blocks for a counter with `true_egress_accounting`.
        sram: if instance.args.iter().any(of_egress) {
            1
        } else {
            blocks
        },
        tcam: 0,
        map_ram: blocks,
    }
}
