mod plot;
