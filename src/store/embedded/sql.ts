/** SQL as tagged templates, written where it runs. Each value of a template is a parameter, never part of the text. */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';

export class Sql {
  readonly #database: DatabaseSync;
  /** Prepared at the first run. A place in the code passes the same object each time. */
  readonly #statements = new Map<TemplateStringsArray, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Returns the number of changed rows. */
  run(template: TemplateStringsArray, ...values: SQLInputValue[]): number {
    return Number(this.#statement(template).run(...values).changes);
  }

  /** Returns the first row. The caller knows its columns. */
  get<Row>(template: TemplateStringsArray, ...values: SQLInputValue[]): Row | undefined {
    return this.#statement(template).get(...values) as Row | undefined;
  }

  /** Like {@link get}, for all rows. */
  all<Row>(template: TemplateStringsArray, ...values: SQLInputValue[]): Row[] {
    return this.#statement(template).all(...values) as Row[];
  }

  #statement(template: TemplateStringsArray): StatementSync {
    const prepared = this.#statements.get(template);
    if (prepared !== undefined) return prepared;
    const statement = this.#database.prepare(template.join('?'));
    this.#statements.set(template, statement);
    return statement;
  }
}
