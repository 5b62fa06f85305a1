//! Compiles tables: their declaration and their application.

use super::expr::const_limbs;
use super::layout::width;
use super::{Compiler, Result, Unit};
use crate::bits::{MAX_BITS, limbs};
use crate::error::{LoadError, TableError};
use crate::externs::counter::CounterKind;
use crate::limits::LIMITS;
use crate::op::{Apply, Mark, Op, ProfilePlan, Reached, Slot, T3, Target};
use crate::table::key::{self, FieldKey, FieldSpec};
use crate::table::{ActionSpec, Bound, DirectMeter, KeyPlan, MAX_WORDS, Spec, Table};
use p4lang::ast::Direction;
use p4lang::ir::{
    self, Annotation, BoundAction, Const, Control, ControlId, Expr, ExprKind, ExternKind, Keyset,
    StmtKind, TableId, Type, VarId,
};
use p4lang::runtime::{Match, MatchKind as Kind, Value};

/// Maximum number of entries of a table that declares no size: p4c's default.
const DEFAULT_SIZE: u64 = 1024;

/// A table's direct counter (name and kind), and its direct meter; `None` if it has none.
type DirectObjects = (Option<(String, CounterKind)>, Option<DirectMeter>);

impl Compiler<'_> {
    pub(crate) fn declare_tables(&mut self) -> Result<()> {
        let program = self.program;
        for (c, control) in program.controls.iter().enumerate() {
            for (t, table) in control.tables.iter().enumerate() {
                self.span = table.span;
                if self.state.tables.len() >= LIMITS.tables {
                    return self.too_large(format!("more than {} tables", LIMITS.tables));
                }
                let built = self.build_table(control, table)?;
                let index = self.state.tables.len() as u32;
                if let Some(profile) = self.profile_of(table) {
                    let empty = table.empty_group_action.as_ref();
                    let empty = empty.map(|action| self.bound(&built.spec, action));
                    let profile = &mut self.state.profiles[profile as usize];
                    profile.tables.push(index);
                    profile.empty.push(empty.transpose()?);
                }
                self.bindings
                    .tables
                    .insert((ControlId(c as u32), t as u32), index);
                self.state.tables.push(built);
                self.state.found.push(None);
                for (name, value) in &table.properties {
                    if let Const::Extern(id) = value {
                        let dialect = self.dialect;
                        dialect.table_object(self, name, *id, index)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The index of the action profile or selector that a table names; `None` if it names none.
    fn profile_of(&self, table: &ir::Table) -> Option<u32> {
        table
            .properties
            .iter()
            .find_map(|(name, value)| match (name.as_str(), value) {
                ("psa_implementation" | "implementation", Const::Extern(id)) => {
                    self.bindings.profiles.get(id).copied()
                }
                _ => None,
            })
    }

    fn build_table(&mut self, control: &Control, table: &ir::Table) -> Result<Table> {
        let fields = self.key_fields(table)?;
        let actions = self.offered_actions(control, table)?;
        let (direct_counter, direct_meter) = self.direct_objects(table)?;
        let size = table.size.unwrap_or(DEFAULT_SIZE);
        if size > LIMITS.entries {
            return self.too_large(format!("a table of more than {} entries", LIMITS.entries));
        }
        let spec = Spec {
            name: table.name.clone(),
            fields,
            actions,
            const_default: table.const_default,
            const_entries: table.const_entries,
            size,
            implementation: self
                .profile_of(table)
                .map(|p| self.state.profiles[p as usize].spec.name.clone()),
            direct_counter,
            direct_meter,
            idle_timeout: self.has_idle_timeout(table),
        };
        let default = self.bound(&spec, &table.default_action)?;
        let mut built = Table::new(spec, default);
        self.initial_entries(table, &mut built)?;
        Ok(built)
    }

    fn key_fields(&self, table: &ir::Table) -> Result<Vec<FieldSpec>> {
        let mut fields = Vec::new();
        for k in table.key.iter().filter(|k| is_matched(k)) {
            let width = width(&k.expr.ty);
            let Some(field) = FieldSpec::new(&k.name, &k.match_kind, &k.expr.ty, width) else {
                return self.unsupported(format!("match kind {}", k.match_kind));
            };
            if width > MAX_BITS
                || !matches!(
                    k.expr.ty,
                    Type::Bool | Type::Bit(_) | Type::Int(_) | Type::Enum(_) | Type::Error
                )
            {
                return self.unsupported(format!("key field {} of this type", k.name));
            }
            fields.push(field);
        }
        if fields.iter().map(|f| f.width as usize).sum::<usize>() > MAX_WORDS * 64 {
            return self.unsupported("a key of more than 4096 bits");
        }
        if fields.iter().filter(|f| f.kind == Kind::Lpm).count() > 1 {
            return self.unsupported("two lpm fields in one key");
        }
        Ok(fields)
    }

    fn offered_actions(&mut self, control: &Control, table: &ir::Table) -> Result<Vec<ActionSpec>> {
        let has =
            |annotations: &[Annotation], name: &str| annotations.iter().any(|a| a.name == name);
        let mut actions = Vec::new();
        for offered in &table.actions {
            let action = &control.actions[offered.action.index()];
            let mut params = Vec::new();
            for param in action
                .params
                .iter()
                .filter(|p| p.direction == Direction::None)
            {
                let var = &control.vars[param.var.index()];
                if self.size(&var.ty)? != limbs(width(&var.ty)) {
                    return self.unsupported(format!("parameter {} of this type", var.name));
                }
                params.push((param.name.clone(), width(&var.ty)));
            }
            actions.push(ActionSpec {
                name: action.name.clone(),
                params,
                counts: self.uses_direct(table, &ExternKind::DirectCounter, &action.body),
                meters: self.uses_direct(table, &ExternKind::DirectMeter, &action.body),
                default_only: has(&offered.annotations, "defaultonly"),
                table_only: has(&offered.annotations, "tableonly"),
            });
        }
        Ok(actions)
    }

    /// The direct counter and the direct meter that a table names in its properties.
    fn direct_objects(&self, table: &ir::Table) -> Result<DirectObjects> {
        let (mut direct_counter, mut direct_meter) = (None, None);
        for (name, value) in &table.properties {
            match (name.as_str(), value) {
                ("psa_direct_counter" | "counters", Const::Extern(id)) => {
                    let object = &self.program.externs[id.index()];
                    direct_counter = Some((object.name.clone(), self.counter_kind(object)?));
                }
                ("psa_direct_meter" | "meters", Const::Extern(id))
                    if self.program.externs[id.index()].kind == ExternKind::DirectMeter =>
                {
                    let object = &self.program.externs[id.index()];
                    direct_meter = Some(DirectMeter {
                        name: object.name.clone(),
                        bytes: self.counter_kind(object)?.bytes,
                        colours: self.colours(),
                    });
                }
                _ => {}
            }
        }
        Ok((direct_counter, direct_meter))
    }

    /// Adds the entries that the program's source declares to a table.
    fn initial_entries(&mut self, table: &ir::Table, built: &mut Table) -> Result<()> {
        for entry in &table.entries {
            self.span = entry.span;
            let action = self.bound(&built.spec, &entry.action)?;
            let keys: std::result::Result<Vec<FieldKey>, TableError> = built
                .spec
                .fields
                .iter()
                .zip(matched_keys(table, entry))
                .map(|(f, k)| initial_key(f, k))
                .collect();
            keys.and_then(|keys| {
                built.insert_initial(keys, entry.priority, action, entry.is_const)
            })
            .map_err(|error| LoadError::Entry {
                table: table.name.clone(),
                error,
                span: entry.span,
            })?;
        }
        Ok(())
    }

    /// Whether entries with this action body use the table's direct object of this kind: if the body calls it; in v1model
    /// always.
    fn uses_direct(&self, table: &ir::Table, kind: &ExternKind, body: &[ir::Stmt]) -> bool {
        let mut externs = table
            .properties
            .iter()
            .filter_map(|(_, value)| match value {
                Const::Extern(id) => Some(*id),
                _ => None,
            });
        let Some(id) = externs.find(|id| self.program.externs[id.index()].kind == *kind) else {
            return false;
        };
        let mut called = self.rules.counts_hits;
        ir::visit(body, &mut |stmt| {
            called |= matches!(&stmt.kind, StmtKind::CallMethod { object, .. } if *object == id);
        });
        called
    }

    /// Whether the entries of the table may have idle timeouts, as in P4Info: `psa_idle_timeout = NOTIFY_CONTROL`, v1model's
    /// `support_timeout = true`.
    fn has_idle_timeout(&self, table: &ir::Table) -> bool {
        table
            .properties
            .iter()
            .any(|(name, value)| match (name.as_str(), value) {
                ("support_timeout", Const::Bool(on)) => *on,
                ("psa_idle_timeout", Const::Enum(id, member)) => {
                    let members = &self.program.enums[id.index()].members;
                    members
                        .get(*member as usize)
                        .is_some_and(|m| m == "NOTIFY_CONTROL")
                }
                _ => false,
            })
    }

    fn bound(&self, spec: &Spec, action: &BoundAction) -> Result<Bound> {
        let Some(index) = action.action else {
            // A table without a default has NoAction, which appears in its actions only if it is listed.
            let listed = spec.actions.iter().position(|a| a.name == "NoAction");
            return Ok(Bound {
                index: listed.map(|i| i as u32),
                params: Box::default(),
            });
        };
        let mut params = Vec::new();
        for ((name, width), value) in spec.actions[index].params.iter().zip(&action.args) {
            match const_limbs(value, *width) {
                Some(words) => params.extend(words),
                None => return self.unsupported(format!("the value of action parameter {name}")),
            }
        }
        Ok(Bound {
            index: Some(index as u32),
            params: params.into(),
        })
    }

    pub(crate) fn counter_kind(&self, object: &ir::ExternInstance) -> Result<CounterKind> {
        let kind = object.args.iter().find_map(|(_, value)| match value {
            Const::Enum(id, i) => {
                CounterKind::named(self.program.enums[id.index()].members.get(*i as usize)?)
            }
            _ => None,
        });
        match kind {
            Some(kind) => Ok(kind),
            None => self.unsupported("this type of counter"),
        }
    }

    /// How the table at `index` uses an action profile, with the fields that a selector hashes; `None`: it uses none.
    fn profile_plan(&mut self, table: &ir::Table, index: u32) -> Result<Option<ProfilePlan>> {
        let Some(profile) = self.profile_of(table) else {
            return Ok(None);
        };
        let tables = &self.state.profiles[profile as usize].tables;
        let place = tables.iter().position(|t| *t == index).unwrap_or(0) as u32;
        let hashed: Vec<&Expr> = table
            .key
            .iter()
            .filter(|k| selects(k))
            .map(|k| &k.expr)
            .collect();
        let ty = Type::Tuple(hashed.iter().map(|e| e.ty.clone()).collect());
        let (layout, s) = (self.layout(&ty)?, self.size(&ty)?);
        let s = self.alloc(s)?;
        let mut at = s;
        for e in hashed {
            self.expr_into(e, at)?;
            at += self.size(&e.ty)?;
        }
        Ok(Some(ProfilePlan {
            profile,
            place,
            data: Some((layout, s)),
        }))
    }

    /// The slot of a key field of `n` slots. With `sign`: of a copy in which this bit of the uppermost slot is inverted.
    pub(crate) fn with_sign_flipped(
        &mut self,
        slot: Slot,
        n: u32,
        sign: Option<u64>,
    ) -> Result<Slot> {
        let Some(sign) = sign else { return Ok(slot) };
        let (d, sign) = (self.alloc(n)?, self.constant(sign)?);
        let top = n - 1;
        self.copy(d, slot, top)?;
        self.op(Op::Xor(T3 {
            w: 64,
            d: d + top,
            a: slot + top,
            b: sign,
        }))?;
        Ok(d)
    }

    pub(crate) fn apply_table(
        &mut self,
        id: TableId,
        hit: Option<VarId>,
        action_run: Option<VarId>,
    ) -> Result<()> {
        let Unit::Control(control_id, control) = self.scope.unit else {
            return self.unsupported("a table outside a control");
        };
        let table = &control.tables[id.index()];
        let index = self.bindings.tables[&(control_id, id.0)];
        let top = self.frame.top;
        self.mark(|| Mark::Table(table.name.clone()))?;
        let mut key = Vec::new();
        for (i, k) in table.key.iter().filter(|k| is_matched(k)).enumerate() {
            let slot = self.expr(&k.expr)?;
            let sign = self.state.tables[index as usize].spec.fields[i].sign();
            let n = self.size(&k.expr.ty)?;
            let slot = self.with_sign_flipped(slot, n, sign)?;
            key.extend(slot..slot + n);
        }
        let profile = self.profile_plan(table, index)?;
        let (mut blocks, mut actions) = (Vec::new(), Vec::new());
        for action in &table.actions {
            let mut n = 0;
            for param in &control.actions[action.action.index()].params {
                if param.direction == Direction::None {
                    n += self.size(&control.vars[param.var.index()].ty)?;
                }
            }
            let block = self.alloc(n)?;
            blocks.push(block);
            actions.push(Reached {
                target: self.label(),
                params: (block..block + n).collect(),
            });
        }
        let targets: Vec<Target> = actions.iter().map(|a| a.target).collect();
        let end = self.label();
        let extern_of = |property: &str| {
            let found = table.properties.iter().find(|(name, _)| name == property);
            found.and_then(|(_, value)| match value {
                Const::Extern(id) => Some(*id),
                _ => None,
            })
        };
        // Tofino's direct counters count when they are called.
        let counts = self.rules.counts_hits && extern_of("counters").is_some();
        let colour = extern_of("meters").and_then(|id| self.direct_meters.get(&id).copied());
        let slot = |c: &Self, var: Option<VarId>| var.map(|v| c.scope.slots[v.index()]);
        let idles = self.state.tables[index as usize].spec.idle_timeout;
        self.code.applies.push(Apply {
            table: index,
            key,
            plan: KeyPlan::default(),
            actions,
            end,
            hit: slot(self, hit),
            action_run: slot(self, action_run),
            counts,
            colour,
            profile,
            notes: idles || counts || colour.is_some(),
        });
        self.op(Op::Apply((self.code.applies.len() - 1) as u32))?;
        for ((action, target), block) in table.actions.iter().zip(targets).zip(blocks) {
            self.place(target);
            self.block(&action.calls)?;
            self.action(action.action, &action.args, Some(block))?;
            self.op(Op::Jump(end))?;
        }
        self.place(end);
        self.frame.top = top;
        Ok(())
    }
}

/// Whether table entries match this key field: they do not match fields that a selector hashes.
fn is_matched(key: &ir::Key) -> bool {
    !selects(key)
}

/// Whether a selector hashes this key field.
fn selects(key: &ir::Key) -> bool {
    key.match_kind == "selector"
}

fn matched_keys<'e>(
    table: &'e ir::Table,
    entry: &'e ir::Entry,
) -> impl Iterator<Item = &'e Keyset> {
    let keys = table.key.iter().zip(&entry.keys);
    keys.filter(|(key, _)| is_matched(key)).map(|(_, set)| set)
}

/// The canonical form of a key field of an entry in the source.
fn initial_key(spec: &FieldSpec, set: &Keyset) -> std::result::Result<FieldKey, TableError> {
    let bad = |why| TableError::BadMatch(spec.name.clone(), why);
    let value = |e: &Expr| match &e.kind {
        ExprKind::Const(c) => const_limbs(c, spec.width)
            .map(|words| Value::from_limbs(&words))
            .ok_or_else(|| bad("the value is too wide")),
        _ => Err(bad("the value is not a compile-time known value")),
    };
    let given = match (set, spec.kind) {
        (Keyset::Any, Kind::Exact) => return Err(TableError::MissingField(spec.name.clone())),
        (Keyset::Any, _) => return key::dont_care(spec),
        (Keyset::Value(e), Kind::Exact) => Match::Exact(value(e)?),
        (Keyset::Value(e), Kind::Optional) => Match::Optional(value(e)?),
        (Keyset::Value(e), Kind::Lpm) => Match::Lpm {
            value: value(e)?,
            prefix_len: spec.width,
        },
        (Keyset::Value(e), Kind::Ternary) => Match::Ternary {
            value: value(e)?,
            mask: spec.max(),
        },
        (Keyset::Value(e), Kind::Range) => Match::Range {
            low: value(e)?,
            high: value(e)?,
        },
        (Keyset::Mask(v, m), Kind::Ternary) => Match::Ternary {
            value: &value(v)? & &value(m)?,
            mask: value(m)?,
        },
        (Keyset::Mask(v, m), Kind::Lpm) => {
            let mask = value(m)?;
            let prefix_len = mask.count_ones();
            if mask != Value::prefix(spec.width, prefix_len) {
                return Err(bad("the mask is not a prefix"));
            }
            Match::Lpm {
                value: &value(v)? & &mask,
                prefix_len,
            }
        }
        (Keyset::Range(low, high), Kind::Range) => Match::Range {
            low: value(low)?,
            high: value(high)?,
        },
        _ => return Err(TableError::WrongMatchKind(spec.name.clone(), spec.kind)),
    };
    key::field_key(spec, &given)
}
