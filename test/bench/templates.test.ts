import { describe, expect, it } from 'vitest';
import { fillIn } from '../../bench/surroundings.ts';

describe('configuration templates', () => {
  it('every placeholder is filled in, and other at signs stay', () => {
    expect(fillIn('listen @port@; pid @name@.pid; # @Port@', { port: 80, name: 'up' })).toBe(
      'listen 80; pid up.pid; # @Port@',
    );
  });

  it('a placeholder without a value is an error', () => {
    expect(() => fillIn('listen @prot@', { port: 80 })).toThrow('@prot@');
  });
});
