control c(inout bit<8> v) {
    bit<8> n;
    apply {
        while (v < 3) { v = v + 1; }
        v++;
        v == 3;
        if (v = 3) { }
        n = bit<8>;
        v + n;
        switch (v) { case 1: { } default: { } }
        else { }
        'c';
    }
}
