import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Begins with the files whose path matches: the others fill the gaps at the end. */
export function slowFirst(slow: RegExp): typeof BaseSequencer {
  return class SlowFirst extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      const isSlow = ({ moduleId }: TestSpecification) => slow.test(moduleId);
      return (await super.sort(files)).toSorted((a, b) => Number(isSlow(b)) - Number(isSlow(a)));
    }
  };
}
