// What we use of cm-chessboard, which has no types of its own.
declare module "cm-chessboard/src/Chessboard.js" {
  export const COLOR: { white: "w"; black: "b" };
  export const INPUT_EVENT_TYPE: Record<
    "moveInputStarted" | "movingOverSquare" | "validateMoveInput" | "moveInputCanceled" | "moveInputFinished", string>;
  export interface InputEvent { type: string; squareFrom: string; squareTo: string; piece?: string }
  export class Chessboard {
    constructor(context: HTMLElement, props: object);
    props: { style: { animationDuration: number } };
    setPosition(fen: string, animated?: boolean): Promise<void>;
    setOrientation(color: "w" | "b", animated?: boolean): Promise<void>;
    enableMoveInput(handler: (event: InputEvent) => boolean | void, color?: "w" | "b"): void;
    disableMoveInput(): void;
    isMoveInputEnabled(): boolean;
    destroy(): void;
  }
}
