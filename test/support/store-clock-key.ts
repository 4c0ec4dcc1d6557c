/** The key with the seconds by which the clock of the store is ahead. A file of its own: a preload imports nothing else. */
export const STORE_CLOCK_SET_BY = 'test:clock-set-by';
