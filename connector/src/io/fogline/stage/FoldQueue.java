package io.fogline.stage;

/**
 * A queue that knows the fold of its entered cells at every moment, at a constant number of merges a
 * cell. Cells first wait, then enter at the back, then leave at the front. The front part holds, in
 * place of each cell, the fold of it and all later ones of the front part; the back part its cells
 * and their fold. {@link #flip} turns the back part into the front part.
 */
final class FoldQueue<T> extends Cells<T> {
    private final Fold<T> fold;
    private int front;
    private int entered;
    private T back;

    FoldQueue(Fold<T> fold) {
        this.fold = fold;
    }

    /** Entered cells. */
    int entered() {
        return entered;
    }

    boolean waiting() {
        return entered < size();
    }

    long nextKey() {
        return key(entered);
    }

    /** Lets the first waiting cell in. */
    void enter() {
        back = fold.join(back, cell(entered++));
    }

    /** Merges into the last cell, which must still wait. */
    void mergeLast(T cell) {
        set(size() - 1, fold.join(cell(size() - 1), cell));
    }

    /** The front part must be empty, or is dropped. */
    void flip() {
        drop(front);
        for (int i = entered - 2; i >= 0; i--) {
            set(i, fold.join(cell(i), cell(i + 1)));
        }
        front = entered;
        back = null;
    }

    /** Removes the oldest entered cell. */
    void leave() {
        if (front == 0) {
            flip();
        }
        drop(1);
    }

    @Override
    void drop(int count) {
        super.drop(count);
        front = Math.max(0, front - count);
        entered = Math.max(0, entered - count);
    }

    /** Forgets the front part only: what is left is the back part. */
    void dropFrontBelow(long low) {
        while (front > 0 && key(0) < low) {
            drop(1);
        }
    }

    /** Forgets what has entered if all of it is below {@code low}, else only what that leaves of the front part. */
    void dropPassed(long low) {
        if (entered > 0 && key(entered - 1) < low) {
            dropEntered();
        } else {
            dropFrontBelow(low);
        }
    }

    /** Forgets all that has entered. */
    void dropEntered() {
        drop(entered);
        back = null;
    }

    /** The fold of everything entered, or null. */
    T total() {
        return front > 0 ? fold.join(cell(0), back) : back;
    }

    @Override
    void clear() {
        super.clear();
        front = 0;
        entered = 0;
        back = null;
    }

    void write(StateWriter out) {
        write(out, fold::write);
        out.putLong(front);
        out.putLong(entered);
        out.putBoolean(back != null);
        if (back != null) {
            fold.write(back, out);
        }
    }

    void read(StateReader in) {
        read(in, fold::read);
        front = in.getInt();
        entered = in.getInt();
        back = in.getBoolean() ? fold.read(in) : null;
    }
}
