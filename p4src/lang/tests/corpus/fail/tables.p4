control c(inout bit<8> v) {
    action a(bit<8> x) { }
    table t {
        key = { v; v : ; v : exact }
        actions = a;
        actions = { a, b; 5; a(1); }
        entries = { 1 : a(1) 2 : a(2); const 3 : a(3); priority 4 : a; }
        size 5;
        default_action = a(;
    }
    apply { t.apply(); }
}
