// What a page can ask of its source beside looking: the same questions to a server and to the simulator.

export interface Price {
  lines: string[];
  destroys: number;
}

export interface Salvaged {
  records: { offset: number; epoch: number; key?: string | null; value?: string | null }[];
  count: number;
  commands: string[];
}

export interface Control {
  // Why no fault can be asked for; null: it can.
  readonly refuses: string | null;
  price(action: string, node: number): Promise<Price>;
  // What was done, in a sentence.
  act(action: string, node: number | null): Promise<string>;
  salvaged(topic: string, partition: number): Promise<Salvaged>;
}
