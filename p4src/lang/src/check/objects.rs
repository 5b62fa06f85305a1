//! Extern objects as run-time parameters of parsers, controls and functions (P4_16 1.2.5, section 6.8).
//!
//! Once all instances are lowered, it is known which objects calls pass to a parameter. The parameter then becomes a number,
//! and a method call on it becomes a `switch` over these objects, so targets never see such parameters.

use super::Output;
use super::instantiate::is_packet;
use crate::ir::{
    Arg, Block, Const, ControlId, Expr, ExprKind, ExternId, FunctionId, LValue, Param, ParserId,
    Stmt, StmtKind, Type, Var, VarId, visit,
};
use crate::limits::LIMITS;
use num_bigint::BigUint;
use std::collections::{BTreeMap, BTreeSet};

/// Tag bit of a parameter number, above every [`ExternId`]: there are at most [`crate::Limits::instances`] objects.
const PARAMETER: u32 = 1 << 31;

/// The placeholder id of the extern object that the parameter `var` holds, until [`resolve`] replaces it.
pub(super) fn held_by(var: VarId) -> ExternId {
    ExternId(PARAMETER | var.0)
}

fn holder(object: ExternId) -> Option<VarId> {
    (object.0 & PARAMETER != 0).then_some(VarId(object.0 & !PARAMETER))
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum UnitId {
    Parser(ParserId),
    Control(ControlId),
    Function(FunctionId),
}

type Slot = (UnitId, VarId);

/// Error: replacing object parameters would create too many statements, for too many calls on too many objects.
pub(super) struct TooMany;

/// Replaces parameters that are extern objects by numbers, and method calls on them by switches over these numbers.
pub(super) fn resolve(out: &mut Output) -> Result<(), TooMany> {
    if !units(out).any(|(_, vars)| vars.iter().any(is_object)) {
        return Ok(());
    }
    let held = Held::new(out);
    let mut rewrite = Rewrite {
        held: &held,
        made: 0,
    };
    let params = Params::new(out);
    for (n, p) in out.parsers.iter_mut().flatten().enumerate() {
        let unit = UnitId::Parser(ParserId(n as u32));
        rewrite.block(unit, &params, &mut p.init)?;
        for state in &mut p.states {
            rewrite.block(unit, &params, &mut state.body)?;
        }
        numbers(&mut p.params, &mut p.vars);
    }
    for (n, c) in out.controls.iter_mut().flatten().enumerate() {
        let unit = UnitId::Control(ControlId(n as u32));
        rewrite.block(unit, &params, &mut c.body)?;
        for action in &mut c.actions {
            rewrite.block(unit, &params, &mut action.body)?;
            directions(&mut action.params, &c.vars);
        }
        for offered in c.tables.iter_mut().flat_map(|t| &mut t.actions) {
            rewrite.block(unit, &params, &mut offered.calls)?;
        }
        numbers(&mut c.params, &mut c.vars);
    }
    for (n, f) in out.functions.iter_mut().flatten().enumerate() {
        let unit = UnitId::Function(FunctionId(n as u32));
        rewrite.block(unit, &params, &mut f.body)?;
        numbers(&mut f.params, &mut f.vars);
    }
    Ok(())
}

fn units(out: &Output) -> impl Iterator<Item = (UnitId, &[Var])> {
    let parsers = out.parsers.iter().enumerate().filter_map(|(n, p)| {
        let unit = UnitId::Parser(ParserId(n as u32));
        p.as_ref().map(|p| (unit, p.vars.as_slice()))
    });
    let controls = out.controls.iter().enumerate().filter_map(|(n, c)| {
        let unit = UnitId::Control(ControlId(n as u32));
        c.as_ref().map(|c| (unit, c.vars.as_slice()))
    });
    let functions = out.functions.iter().enumerate().filter_map(|(n, f)| {
        let unit = UnitId::Function(FunctionId(n as u32));
        f.as_ref().map(|f| (unit, f.vars.as_slice()))
    });
    parsers.chain(controls).chain(functions)
}

fn is_object(var: &Var) -> bool {
    matches!(&var.ty, Type::Extern(name) if !is_packet(name))
}

/// Type of the variable that holds the number of an extern object.
const NUMBER: Type = Type::Bit(32);

fn directions(params: &mut [Param], vars: &[Var]) {
    for p in params {
        if vars.get(p.var.index()).is_some_and(is_object) {
            p.direction = crate::ast::Direction::In;
        }
    }
}

fn numbers(params: &mut [Param], vars: &mut [Var]) {
    directions(params, vars);
    for var in vars.iter_mut().filter(|v| is_object(v)) {
        var.ty = NUMBER;
    }
}

/// For each parser, control, function and action: per parameter, its variable if it is an extern object, else `None`.
struct Params {
    units: BTreeMap<UnitId, Vec<Option<VarId>>>,
    actions: BTreeMap<(UnitId, u32), Vec<Option<VarId>>>,
    /// All parameters that are extern objects.
    objects: BTreeSet<Slot>,
}

impl Params {
    fn new(out: &Output) -> Params {
        let objects = |params: &[Param], vars: &[Var]| -> Vec<Option<VarId>> {
            let object = |p: &Param| vars.get(p.var.index()).is_some_and(is_object);
            params.iter().map(|p| object(p).then_some(p.var)).collect()
        };
        let mut found = Params {
            units: BTreeMap::new(),
            actions: BTreeMap::new(),
            objects: BTreeSet::new(),
        };
        for (unit, vars) in units(out) {
            let objects = (0u32..).zip(vars).filter(|(_, v)| is_object(v));
            found.objects.extend(objects.map(|(n, _)| (unit, VarId(n))));
        }
        for (n, p) in out.parsers.iter().flatten().enumerate() {
            let unit = UnitId::Parser(ParserId(n as u32));
            found.units.insert(unit, objects(&p.params, &p.vars));
        }
        for (n, c) in out.controls.iter().flatten().enumerate() {
            let unit = UnitId::Control(ControlId(n as u32));
            found.units.insert(unit, objects(&c.params, &c.vars));
            for (a, action) in c.actions.iter().enumerate() {
                let of = objects(&action.params, &c.vars);
                found.actions.insert((unit, a as u32), of);
            }
        }
        for (n, f) in out.functions.iter().flatten().enumerate() {
            let unit = UnitId::Function(FunctionId(n as u32));
            found.units.insert(unit, objects(&f.params, &f.vars));
        }
        found
    }

    fn has(&self, unit: UnitId, var: VarId) -> bool {
        self.objects.contains(&(unit, var))
    }

    /// The callee of a call within the program, and per parameter, its variable if it is an extern object, else `None`.
    fn callee(&self, caller: UnitId, kind: &StmtKind) -> Option<(UnitId, &[Option<VarId>])> {
        let unit = match kind {
            StmtKind::ApplyControl(id, _) => UnitId::Control(*id),
            StmtKind::ApplyParser(id, _) => UnitId::Parser(*id),
            StmtKind::CallFunction(id, _) => UnitId::Function(*id),
            StmtKind::CallAction(id, _) => {
                return Some((caller, self.actions.get(&(caller, id.0))?));
            }
            _ => return None,
        };
        Some((unit, self.units.get(&unit)?))
    }
}

/// For each parameter, the numbers of the extern objects that calls may pass to it.
struct Held(BTreeMap<Slot, BTreeSet<u32>>);

impl Held {
    fn new(out: &Output) -> Held {
        let params = Params::new(out);
        let mut held: BTreeMap<Slot, BTreeSet<u32>> = BTreeMap::new();
        let mut passed: Vec<(Slot, Slot)> = Vec::new();
        let mut see = |caller: UnitId, stmt: &Stmt| {
            let (Some((unit, objects)), Some(args)) =
                (params.callee(caller, &stmt.kind), inner_args(&stmt.kind))
            else {
                return;
            };
            for (arg, object) in args.iter().zip(objects) {
                let Some(var) = object else { continue };
                match arg {
                    Arg::Extern(id) => {
                        held.entry((unit, *var)).or_default().insert(id.0);
                    }
                    Arg::Object(from) => passed.push(((caller, *from), (unit, *var))),
                    _ => {}
                }
            }
        };
        for (n, p) in out.parsers.iter().flatten().enumerate() {
            let unit = UnitId::Parser(ParserId(n as u32));
            visit(&p.init, &mut |s| see(unit, s));
            for state in &p.states {
                visit(&state.body, &mut |s| see(unit, s));
            }
        }
        for (n, c) in out.controls.iter().flatten().enumerate() {
            let unit = UnitId::Control(ControlId(n as u32));
            visit(&c.body, &mut |s| see(unit, s));
            for action in &c.actions {
                visit(&action.body, &mut |s| see(unit, s));
            }
            for offered in c.tables.iter().flat_map(|t| &t.actions) {
                visit(&offered.calls, &mut |s| see(unit, s));
            }
        }
        for (n, f) in out.functions.iter().flatten().enumerate() {
            let unit = UnitId::Function(FunctionId(n as u32));
            visit(&f.body, &mut |s| see(unit, s));
        }
        // Calls have no cycles, so each iteration resolves one more level of nesting.
        loop {
            let mut grew = false;
            for (from, to) in &passed {
                let more = held.get(from).cloned().unwrap_or_default();
                let there = held.entry(*to).or_default();
                let before = there.len();
                there.extend(more);
                grew |= there.len() > before;
            }
            if !grew {
                return Held(held);
            }
        }
    }
}

fn inner_args(kind: &StmtKind) -> Option<&[Arg]> {
    match kind {
        StmtKind::ApplyControl(_, args)
        | StmtKind::ApplyParser(_, args)
        | StmtKind::CallFunction(_, args)
        | StmtKind::CallAction(_, args) => Some(args),
        _ => None,
    }
}

struct Rewrite<'h> {
    held: &'h Held,
    /// Number of statements that the rewriting has created.
    made: u64,
}

impl Rewrite<'_> {
    fn block(&mut self, unit: UnitId, params: &Params, block: &mut Block) -> Result<(), TooMany> {
        let mut out = Vec::with_capacity(block.len());
        for mut stmt in std::mem::take(block) {
            match &mut stmt.kind {
                StmtKind::If(arms, otherwise) => {
                    for arm in arms {
                        self.block(unit, params, &mut arm.before)?;
                        self.block(unit, params, &mut arm.then)?;
                    }
                    self.block(unit, params, otherwise)?;
                }
                StmtKind::Switch { cases, default, .. } => {
                    for (_, block) in cases {
                        self.block(unit, params, block)?;
                    }
                    self.block(unit, params, default)?;
                }
                StmtKind::Loop {
                    cond_stmts,
                    body,
                    update,
                    ..
                } => {
                    self.block(unit, params, cond_stmts)?;
                    self.block(unit, params, body)?;
                    self.block(unit, params, update)?;
                }
                StmtKind::Atomic(block, _) => self.block(unit, params, block)?,
                _ => {}
            }
            pass_numbers(&mut stmt, unit, params);
            self.call(unit, params, stmt, &mut out)?;
        }
        *block = out;
        Ok(())
    }

    /// Builds one method call per object that the parameter may hold; none if no call passes an object (unreachable code).
    fn call(
        &mut self,
        unit: UnitId,
        params: &Params,
        stmt: Stmt,
        out: &mut Block,
    ) -> Result<(), TooMany> {
        let Some(var) = unresolved(|var| params.has(unit, var), &stmt.kind) else {
            out.push(stmt);
            return Ok(());
        };
        let empty = BTreeSet::new();
        let objects = self.held.0.get(&(unit, var)).unwrap_or(&empty);
        self.made += objects.len() as u64;
        if self.made > LIMITS.work / 8 {
            return Err(TooMany);
        }
        let span = stmt.span;
        let mut cases = Vec::with_capacity(objects.len());
        for id in objects {
            let mut one = stmt.clone();
            replace(&mut one.kind, var, ExternId(*id));
            let mut block = Vec::new();
            self.call(unit, params, one, &mut block)?;
            cases.push((vec![number(*id)], block));
        }
        let Some((_, default)) = cases.pop() else {
            return Ok(());
        };
        if cases.is_empty() {
            out.extend(default);
            return Ok(());
        }
        let kind = StmtKind::Switch {
            value: read(var),
            cases,
            default,
        };
        out.push(Stmt { kind, span });
        Ok(())
    }
}

/// The first parameter on which a statement calls a method, or which it passes to an extern; `None` if there is none.
fn unresolved(is_object: impl Fn(VarId) -> bool, kind: &StmtKind) -> Option<VarId> {
    let (on, args) = match kind {
        StmtKind::CallMethod { object, args, .. } => (holder(*object), args),
        StmtKind::CallExtern { args, .. } => (None, args),
        _ => return None,
    };
    let mut handed = args.iter().filter_map(|arg| match arg {
        Arg::Object(var) if is_object(*var) => Some(*var),
        _ => None,
    });
    on.or_else(|| handed.next())
}

/// Replaces extern objects among a call's arguments by their numbers.
fn pass_numbers(stmt: &mut Stmt, unit: UnitId, params: &Params) {
    let Some((_, objects)) = params.callee(unit, &stmt.kind) else {
        return;
    };
    let (StmtKind::ApplyControl(_, args)
    | StmtKind::ApplyParser(_, args)
    | StmtKind::CallFunction(_, args)
    | StmtKind::CallAction(_, args)) = &mut stmt.kind
    else {
        return;
    };
    for (arg, object) in args.iter_mut().zip(objects) {
        if object.is_none() {
            continue;
        }
        match arg {
            Arg::Extern(id) => {
                *arg = Arg::In(Expr {
                    kind: ExprKind::Const(number(id.0)),
                    ty: NUMBER,
                });
            }
            Arg::Object(var) => *arg = Arg::In(read(*var)),
            _ => {}
        }
    }
}

fn number(id: u32) -> Const {
    Const::Bits {
        value: BigUint::from(id),
        ty: NUMBER,
    }
}

fn read(var: VarId) -> Expr {
    Expr {
        kind: ExprKind::Read(LValue {
            var,
            path: Vec::new(),
            ty: NUMBER,
        }),
        ty: NUMBER,
    }
}

/// Replaces the parameter `var` in a statement by the extern object `id`.
fn replace(kind: &mut StmtKind, var: VarId, id: ExternId) {
    let args = match kind {
        StmtKind::CallMethod { object, args, .. } => {
            if holder(*object) == Some(var) {
                *object = id;
            }
            args
        }
        StmtKind::CallExtern { args, .. } => args,
        _ => return,
    };
    for arg in args {
        if matches!(arg, Arg::Object(v) if *v == var) {
            *arg = Arg::Extern(id);
        }
    }
}
