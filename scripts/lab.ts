/** `npm run lab -- TOOL [OPTIONS]`: the tools that measure, search and prove. Without a tool, lists them. */
interface Tool {
  readonly text: string;
  /** Runs the tool, which reads its options from the command line. */
  readonly run: () => Promise<unknown>;
}

const TOOLS: Readonly<Record<string, Tool>> = {
  bench: {
    text: 'measures the gateway against its peers: docs/benchmarks.md',
    run: () => import('../bench/main.ts'),
  },
  console: {
    text: 'measures the console with many customers: docs/console.md',
    run: () => import('../tools/console/main.ts'),
  },
  evidence: {
    text: 'runs the tests that show the guarantees, and counts, for a release: docs/dev/evidence.md',
    run: () => import('./evidence.ts'),
  },
  fuzz: {
    text: 'searches for faults in the HTTP handling with random requests',
    run: () => import('../test/fuzz/main.ts'),
  },
  model: {
    text: 'has the model checker SPIN search the formal model of the quota: docs/dev/model.md',
    run: () => import('../tools/model/main.ts'),
  },
  'over-admission': {
    text: 'counts what gateways let through above the limit: docs/guarantees.md',
    run: () => import('../tools/over-admission/main.ts'),
  },
  pictures: {
    text: 'takes the pictures in docs/images again, in Chromium',
    run: () => import('./pictures.ts').then(({ takePictures }) => takePictures()),
  },
  scale: {
    text: 'simulates many customers and gateways in virtual time: docs/dev/evidence.md',
    run: () => import('../tools/scale/main.ts'),
  },
  soak: {
    text: 'runs a gateway under load for a long time, with faults: docs/dev/evidence.md',
    run: () => import('../tools/soak/main.ts'),
  },
};

const [node = '', script = '', name = '', ...options] = process.argv;
const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
if (tool === undefined) {
  const rows = Object.entries(TOOLS).map(([each, { text }]) => `  ${each.padEnd(16)}${text}`);
  console.error(`Usage: npm run lab -- TOOL [OPTIONS]\n\n${rows.join('\n')}`);
  process.exitCode = ['', 'help', '--help'].includes(name) ? 0 : 1;
} else {
  process.argv = [node, script, ...options];
  await tool.run();
}

export {};
